"""Convolution and its gradients from the definition, in NumPy."""

import numpy as np


def out_sizes(sizes, taps, stride, padding, dilation):
    every = zip(sizes, taps, stride, padding, dilation)
    return tuple((n + 2 * p - (t - 1) * d - 1) // s + 1 for n, t, s, p, d in every)


def windows(x, taps, out, stride, padding, dilation):
    """For every tap: its index, and what it sees of x at every result position: zeros outside."""
    wide = [max((o - 1) * s + (t - 1) * d + 1, n + p) for n, t, o, s, p, d in
            zip(x.shape[2:], taps, out, stride, padding, dilation)]
    padded = np.zeros(x.shape[:2] + tuple(wide))
    padded[(..., *[slice(p, p + n) for p, n in zip(padding, x.shape[2:])])] = x
    for tap in np.ndindex(*taps):
        yield tap, padded[(..., *[slice(t * d, t * d + (o - 1) * s + 1, s) for t, d, o, s in
                                  zip(tap, dilation, out, stride)])]


def grouped(array, groups, axis):
    shape = array.shape
    return array.reshape(shape[:axis] + (groups, shape[axis] // groups) + shape[axis + 1:])


def flipped(w, mirrored):
    return w[(..., *[slice(None, None, -1)] * (w.ndim - 2))] if mirrored else w


def forward_model(x, w, out, stride, padding, dilation, groups, mirrored=False):
    kernel = grouped(flipped(w, mirrored), groups, 0)
    y = np.zeros((x.shape[0], groups, kernel.shape[1], *out))
    for tap, seen in windows(x, w.shape[2:], out, stride, padding, dilation):
        y += np.einsum("ngc...,gkc->ngk...", grouped(seen, groups, 1), kernel[(..., *tap)])
    return y.reshape(x.shape[0], w.shape[0], *out)


def slope_model(x, dy, w_shape, stride, padding, dilation, groups, mirrored=False):
    dw = np.zeros(w_shape)
    slopes = grouped(dy, groups, 1).reshape(dy.shape[0], groups, w_shape[0] // groups, -1)
    for tap, seen in windows(x, w_shape[2:], dy.shape[2:], stride, padding, dilation):
        inputs = grouped(seen, groups, 1).reshape(x.shape[0], groups, w_shape[1], -1)
        dw[(..., *tap)] = np.einsum("ngkp,ngcp->gkc", slopes, inputs).reshape(w_shape[:2])
    return np.ascontiguousarray(flipped(dw, mirrored))


def data_model(dy, w, x_shape, stride, padding, dilation, groups, mirrored=False):
    """The transpose of forward_model: every product goes back to where its x came from."""
    wide = [max((o - 1) * s + (t - 1) * d + 1, n + p) for n, t, o, s, p, d in
            zip(x_shape[2:], w.shape[2:], dy.shape[2:], stride, padding, dilation)]
    padded = np.zeros(tuple(x_shape[:2]) + tuple(wide))
    kernel, slopes = grouped(flipped(w, mirrored), groups, 0), grouped(dy, groups, 1)
    for tap in np.ndindex(*w.shape[2:]):
        place = (..., *[slice(t * d, t * d + (o - 1) * s + 1, s) for t, d, o, s in
                        zip(tap, dilation, dy.shape[2:], stride)])
        share = np.einsum("ngk...,gkc->ngc...", slopes, kernel[(..., *tap)])
        padded[place] += share.reshape(x_shape[0], x_shape[1], *dy.shape[2:])
    return padded[(..., *[slice(p, p + n) for p, n in zip(padding, x_shape[2:])])]
