"""Tests of scikit-learn's that onefit does not pass, and why. Every other one passes."""

import sklearn
from sklearn.utils.fixes import parse_version

NO_PROBABILITY = "onefit has no probability=True, which scikit-learn removes in 1.11"

# By name of the test, or of one case of it.
EXCEPTIONS = {
    "test_probability": NO_PROBABILITY,
    "test_hasattr_predict_proba": NO_PROBABILITY,
    "test_probability_raises_futurewarning": NO_PROBABILITY,
    "test_svc_nusvc_probA_probB_deprecated": NO_PROBABILITY,
    "test_unsorted_indices": NO_PROBABILITY,
    "test_sparse_svc_clone_with_callable_kernel": NO_PROBABILITY,
    "test_svr_errors": "a kernel function that returns a wrong shape is refused by fit already",
    "test_pickle": "pickles a class of the module of tests, of which a copy is run here",
    "test_tweak_params": "sets the private _dual_coef_; onefit predicts with the public dual_coef_",
}

installed = parse_version(sklearn.__version__)
if installed < parse_version("1.8"):
    EXCEPTIONS |= {"test_svc": NO_PROBABILITY}
if installed < parse_version("1.9"):
    EXCEPTIONS |= {
        "test_svc_clone_with_callable_kernel": NO_PROBABILITY,
        "test_unicode_kernel": NO_PROBABILITY,
        "test_consistent_proba": NO_PROBABILITY,
        "test_random_search_cv_results_multimetric": NO_PROBABILITY,
    } | {
        f"test_negative_sample_weights_mask_all_samples[weights-are-{weights}-NuSVC]": (
            "onefit's message is that of the other estimators, as scikit-learn's is today"
        )
        for weights in ("zero", "negative")
    }
