# The Python package in UNDERSTUDY_PACKAGE_DIR: the bindings, and what else it ships beside the SDK trees.
# The declarations come from the shipped headers, so the modules are made again whenever a header changes.
set(binding_modules)
foreach(stack ascend maca ftdsp)
  file(GLOB_RECURSE stack_headers CONFIGURE_DEPENDS include/${stack}/*.h ${pages}/include/${stack}/*.h)
  set(module ${CMAKE_BINARY_DIR}/python/_${stack}_cffi.py)
  set(header_list ${CMAKE_BINARY_DIR}/python/${stack}_headers) # so that a header that is gone counts, too
  file(GENERATE OUTPUT ${header_list} CONTENT "${stack_headers}")
  add_custom_command(OUTPUT ${module}
    COMMAND ${Python_EXECUTABLE} ${CMAKE_SOURCE_DIR}/python/build_bindings.py
      --stack ${stack} --include ${CMAKE_SOURCE_DIR}/include ${pages}/include --compiler ${CMAKE_C_COMPILER} --output ${module}
    DEPENDS ${CMAKE_SOURCE_DIR}/python/build_bindings.py ${stack_headers} ${header_list}
      ${CMAKE_SOURCE_DIR}/include/understudy/understudy.h
    COMMENT "Python bindings of ${stack}" VERBATIM)
  list(APPEND binding_modules ${module})
endforeach()
set(stubs ${CMAKE_BINARY_DIR}/python/ops.pyi)
add_custom_command(OUTPUT ${stubs}
  COMMAND ${Python_EXECUTABLE} ${CMAKE_SOURCE_DIR}/python/build_stubs.py --pages ${pages}/rules/pages.json --output ${stubs}
  DEPENDS ${CMAKE_SOURCE_DIR}/python/build_stubs.py ${CMAKE_SOURCE_DIR}/python/understudy/ascend/operator_text.py
    ${CMAKE_SOURCE_DIR}/python/understudy/ascend/ops.py
    ${pages}/rules/pages.json
  COMMENT "Python types of the operators" VERBATIM)
add_custom_target(python_bindings ALL DEPENDS ${binding_modules} ${stubs})

if(NOT SKBUILD) # scikit-build-core copies it itself
  install(DIRECTORY python/understudy/ DESTINATION ${UNDERSTUDY_PACKAGE_DIR} PATTERN "__pycache__" EXCLUDE)
endif()
install(FILES ${binding_modules} DESTINATION ${UNDERSTUDY_PACKAGE_DIR})
install(FILES ${stubs} DESTINATION ${UNDERSTUDY_PACKAGE_DIR}/ascend)
# `understudy demo` compiles the examples where the package is installed.
install(DIRECTORY examples_c/ DESTINATION ${UNDERSTUDY_PACKAGE_DIR}/examples_c)
# `understudy conform` runs the cases of the ABI: the rule cases and the tests of the stacks, the same files as here.
# tests/kernels, tests/tensor and tests/native.py are there for what cases import from them.
install(DIRECTORY tests/conformance tests/ascend tests/maca tests/ftdsp tests/kernels tests/tensor
  DESTINATION ${UNDERSTUDY_PACKAGE_DIR}/suite/tests FILES_MATCHING PATTERN "*.py" PATTERN "__pycache__" EXCLUDE)
install(FILES tests/__init__.py tests/native.py DESTINATION ${UNDERSTUDY_PACKAGE_DIR}/suite/tests)
# The ABI of each version, for `understudy abi --against`.
install(DIRECTORY abi/ DESTINATION ${UNDERSTUDY_PACKAGE_DIR}/abi FILES_MATCHING PATTERN "*.json")
