/* Versions (cann-runtime 9, doc 24). The files are those of the installation ASCEND_HOME_PATH names; without one, of
 * the installation this library lies in. */
#include "ascend/ascendcl/runtime.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

aclError aclrtGetVersion(int32_t *majorVersion, int32_t *minorVersion, int32_t *patchVersion)
{
    Call call = us_call_begin("aclrtGetVersion");
    us_require(&call, majorVersion != NULL, "majorVersion", "null", ACL_ERROR_INVALID_PARAM, "majorVersion is NULL");
    us_require(&call, minorVersion != NULL, "minorVersion", "null", ACL_ERROR_INVALID_PARAM, "minorVersion is NULL");
    us_require(&call, patchVersion != NULL, "patchVersion", "null", ACL_ERROR_INVALID_PARAM, "patchVersion is NULL");
    if (call.status == 0) {
        *majorVersion = ACL_MAJOR_VERSION;
        *minorVersion = ACL_MINOR_VERSION;
        *patchVersion = ACL_PATCH_VERSION;
    }
    return acl_end(&call);
}

/* ---- version.info ---- */

/* The folder above the one this library was loaded from; "" when that cannot be told. */
static void find_own_home(char home[PATH_MAX])
{
    Dl_info info;
    home[0] = '\0';
    if (dladdr((const void *)(intptr_t)&aclsysGetCANNVersion, &info) != 0 && realpath(info.dli_fname, home) != NULL) {
        for (int level = 0; level < 2 && home[0] != '\0'; level++) {
            char *slash = strrchr(home, '/');
            home[slash != NULL ? slash - home : 0] = '\0';
        }
    }
}

static FILE *open_version_file(const char *home, const char *package)
{
    char path[4096];
    int length = snprintf(path, sizeof path, "%s/share/info/%s/version.info", home, package);
    return length > 0 && (size_t)length < sizeof path ? fopen(path, "r") : NULL;
}

/* Package names may be written with - or _. */
static FILE *find_version_file(const char *home, const char *package)
{
    char name[256];
    snprintf(name, sizeof name, "%s", package);
    FILE *file = open_version_file(home, name);
    for (int spelling = 0; file == NULL && spelling < 2; spelling++) {
        for (char *letter = name; *letter != '\0'; letter++) {
            if (*letter == '-' || *letter == '_') {
                *letter = "-_"[spelling];
            }
        }
        file = open_version_file(home, name);
    }
    return file;
}

/* The value of the line "Version=…"; false when there is none. */
static bool read_version_line(FILE *file, char version[ACL_PKG_VERSION_MAX_SIZE])
{
    static const char KEY[] = "Version=";
    char line[512];
    while (fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, KEY, sizeof KEY - 1) == 0) {
            line[strcspn(line, "\r\n")] = '\0';
            snprintf(version, ACL_PKG_VERSION_MAX_SIZE, "%.*s", ACL_PKG_VERSION_MAX_SIZE - 1, line + sizeof KEY - 1);
            return true;
        }
    }
    return false;
}

static void require_version(Call *call, const char *package, char version[ACL_PKG_VERSION_MAX_SIZE])
{
    if (call->status != 0) {
        return;
    }
    char own[PATH_MAX];
    const char *home = us_environment_text("ASCEND_HOME_PATH", NULL);
    if (home == NULL) {
        find_own_home(own);
        home = own;
    }
    bool plain = strchr(package, '/') == NULL && strlen(package) < ACL_PKG_VERSION_MAX_SIZE;
    FILE *file = plain ? find_version_file(home, package) : NULL;
    bool found = file != NULL && read_version_line(file, version);
    if (file != NULL) {
        fclose(file);
    }
    us_require(call, found, "package", "missing", ACL_ERROR_INVALID_FILE,
               "%s/share/info/%.64s/version.info is missing or has no line Version=", home, package);
}

/* ---- the three questions ---- */

static const char *const package_names[] = {
    [ACL_PKG_NAME_CANN] = "toolkit",     [ACL_PKG_NAME_RUNTIME] = "runtime",
    [ACL_PKG_NAME_COMPILER] = "compiler", [ACL_PKG_NAME_HCCL] = "hccl",
    [ACL_PKG_NAME_TOOLKIT] = "toolkit",  [ACL_PKG_NAME_OPP] = "opp",
    [ACL_PKG_NAME_OPP_KERNEL] = "opp_kernel", [ACL_PKG_NAME_DRIVER] = "driver",
};

/* "8.5.RC1.alpha002": the parts between dots, in the order major, minor, release, patch. */
static void split_version(aclCANNPackageVersion *version)
{
    char *const parts[] = {version->majorVersion, version->minorVersion, version->releaseVersion,
                           version->patchVersion};
    const char *at = version->version;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        size_t length = strcspn(at, ".");
        snprintf(parts[i], ACL_PKG_VERSION_PARTS_MAX_SIZE, "%.*s",
                 (int)(length < ACL_PKG_VERSION_PARTS_MAX_SIZE ? length : ACL_PKG_VERSION_PARTS_MAX_SIZE - 1), at);
        at += length + (at[length] == '.');
    }
}

aclError aclsysGetCANNVersion(aclCANNPackageName name, aclCANNPackageVersion *version)
{
    Call call = us_call_begin("aclsysGetCANNVersion");
    us_require(&call, version != NULL, "version", "null", ACL_ERROR_INVALID_PARAM, "version is NULL");
    us_require(&call, (int)name >= ACL_PKG_NAME_CANN && (int)name <= ACL_PKG_NAME_DRIVER, "name", "range",
               ACL_ERROR_INVALID_PARAM, "name is %d; it must be 0 to 7", (int)name);
    char text[ACL_PKG_VERSION_MAX_SIZE];
    if (call.status == 0) {
        require_version(&call, package_names[name], text);
    }
    if (call.status == 0) {
        memset(version, 0, sizeof *version);
        strcpy(version->version, text);
        split_version(version);
    }
    return acl_end(&call);
}

aclError aclsysGetVersionStr(char *pkgName, char *versionStr)
{
    Call call = us_call_begin("aclsysGetVersionStr");
    us_require(&call, pkgName != NULL, "pkgName", "null", ACL_ERROR_INVALID_PARAM, "pkgName is NULL");
    us_require(&call, versionStr != NULL, "versionStr", "null", ACL_ERROR_INVALID_PARAM, "versionStr is NULL");
    char text[ACL_PKG_VERSION_MAX_SIZE];
    require_version(&call, pkgName, text);
    if (call.status == 0) {
        strcpy(versionStr, text);
    }
    return acl_end(&call);
}

/* "-rc.2", ".alpha001": what the letters take away and the number behind them adds. False: something else. */
static bool read_suffix(const char *suffix, int32_t *number)
{
    static const struct {
        const char *name;
        int32_t less;
    } suffixes[] = {{"alpha", 300}, {"beta", 200}, {"rc", 100}};
    suffix += strspn(suffix, ".-");
    for (size_t i = 0; i < sizeof suffixes / sizeof suffixes[0]; i++) {
        size_t length = strlen(suffixes[i].name);
        if (strncasecmp(suffix, suffixes[i].name, length) == 0) {
            const char *digits = suffix + length + strspn(suffix + length, ".-");
            char *end = NULL;
            long count = strtol(digits, &end, 10);
            *number = (int32_t)count - suffixes[i].less;
            return *end == '\0' && count >= 0 && count < suffixes[i].less;
        }
    }
    *number = 0;
    return *suffix == '\0';
}

static bool number_of_version(const char *text, int32_t *number)
{
    int32_t parts[3];
    const char *at = text;
    for (int i = 0; i < 3; i++) {
        char *end = NULL;
        long part = strtol(at, &end, 10);
        if (end == at || part < 0 || part > 99 || (i < 2 && *end != '.')) {
            return false;
        }
        parts[i] = (int32_t)part;
        at = end + (i < 2);
    }
    int32_t suffix = 0;
    bool readable = read_suffix(at, &suffix);
    *number = parts[0] * 10000000 + parts[1] * 100000 + parts[2] * 1000 + suffix;
    return readable;
}

aclError aclsysGetVersionNum(char *pkgName, int32_t *versionNum)
{
    Call call = us_call_begin("aclsysGetVersionNum");
    us_require(&call, pkgName != NULL, "pkgName", "null", ACL_ERROR_INVALID_PARAM, "pkgName is NULL");
    us_require(&call, versionNum != NULL, "versionNum", "null", ACL_ERROR_INVALID_PARAM, "versionNum is NULL");
    char text[ACL_PKG_VERSION_MAX_SIZE];
    require_version(&call, pkgName, text);
    int32_t number = 0;
    us_require(&call, number_of_version(text, &number), "package", "version", ACL_ERROR_INTERNAL_ERROR,
               "version %s of %s is not x.y.z with alpha, beta, rc or nothing behind it", text, pkgName);
    if (call.status == 0) {
        *versionNum = number;
    }
    return acl_end(&call);
}
