/* Modified Bessel function of the first kind, order 0. Floats compute in double. */

/* 1 + z P(z) at z = x^2 / 4 up to |x| = 8; e^|x| / sqrt(|x|) Q(16 / |x| - 1) from there. At most 4 ULP. */
US_ALWAYS_INLINE double bessel_i0_double(double x)
{
    const double size = fabs_double(x), bounded = size < 8 ? size : 8, z = 0.25 * bounded * bounded;
    const double near = polynomial_double(
        z, 18, (const double[]){0x1p+0, 0x1p-2, 0x1.c71c71c71c71cp-6, 0x1.c71c71c71c71cp-10, 0x1.23456789abcdfp-14,
                                0x1.02e85c0898b7bp-19, 0x1.522a43f6546cp-25, 0x1.522a43f6576e8p-31,
                                0x1.0b31328983baep-37, 0x1.560188651e87bp-44, 0x1.69ca9c5f2976cp-51,
                                0x1.4197b19b2f9afp-58, 0x1.e7246785e8073p-66, 0x1.3e2bb0ccad953p-73,
                                0x1.697df9fc1f4efp-81, 0x1.6ea07d2a2df07p-89, 0x1.222f99952192ep-97,
                                0x1.7239adfab4b7ep-105});
    const double far = polynomial_double(
        16 / size - 1, 24, (const double[]){0x1.9bd428ad249a5p-2, 0x1.b87969bb93b61p-9, 0x1.1daa72b5d2f36p-13,
                                            0x1.75e5ee7264094p-17, 0x1.8e513bf44c917p-20, 0x1.3f49a529a3723p-22,
                                            0x1.7d0d46a3a757p-24, 0x1.51cf75062d54ep-25, 0x1.727a2339b7f31p-26,
                                            0x1.037881f07e7c2p-27, -0x1.d627b5c9affdp-28, -0x1.cc4a1f0b0f674p-27,
                                            -0x1.5bc05c955f6ap-28, 0x1.025a34855c69bp-27, 0x1.c5ad6bc64968p-28,
                                            -0x1.d9e69dcd1f32p-29, -0x1.3ddf088ddd1efp-28, 0x1.8ff207656b166p-30,
                                            0x1.3311253aaea89p-29, -0x1.20fb58ede722ep-31, -0x1.754e491457cf4p-31,
                                            0x1.2763972e56be7p-33, 0x1.a8717bba977e8p-34, -0x1.2baca5594fdfbp-36});
    /* e^x overflows before the result does. */
    const double large = exp_times_double(size, -8) * (far / sqrt_double(size)) * 0x1p8;
    return size < 8 ? fma_double(z, near, 1) : size < INFINITY ? large : size;
}

US_ALWAYS_INLINE float bessel_i0_float(float x) { return (float)bessel_i0_double((double)x); }
