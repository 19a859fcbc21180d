/** The environment of a server's process: a few safe variables, and those in its record. */
import { Fault } from '../../core/errors.ts'

const inherited = ['HOME', 'PATH', 'LANG', 'TERM', 'USER', 'LOGNAME', 'SHELL', 'TMPDIR']
/** Behind a proxy, `npx` and `uvx` cannot download anything without these. */
const proxies = ['HTTP_PROXY', 'HTTPS_PROXY', 'ALL_PROXY', 'NO_PROXY'].flatMap((name) => [name, name.toLowerCase()])
const certificates = [
	'NODE_USE_ENV_PROXY',
	'NODE_EXTRA_CA_CERTS',
	'NODE_USE_SYSTEM_CA',
	'SSL_CERT_FILE',
	'SSL_CERT_DIR',
	'REQUESTS_CA_BUNDLE',
]
/** Windows cannot start a process without these. */
const inheritedOnWindows = ['APPDATA', 'LOCALAPPDATA', 'PATHEXT', 'PROGRAMFILES', 'SYSTEMROOT', 'TEMP', 'USERPROFILE']

/** Variables that make an interpreter, a loader or a shell run code that the command line does not name. */
const codeRunning = [
	/^node_(options|path|repl_external_module)$/,
	/^(ld|dyld)_/,
	/^(bash_env|shellopts|bashopts|ifs|ps4|prompt_command)$/,
	/^bash_func/,
	/^python/,
	/^perl5?(opt|lib|db)$/,
	/^ruby(opt|lib)$/,
	/^npm_config_/,
	/^(yarn|pnpm|bun|uv|pip)_/,
	/^(java_tool_options|_java_options|jdk_java_options)$/,
	/^(dotnet_startup_hooks|corecl?r_.*|complus_.*)$/,
	/^(gconv_path|malloc_trace|locpath|nlspath|hostaliases|localdomain|res_options|getconf_dir|openssl_(conf|modules|engines))$/,
	/^git_(ssh|exec_path|config|askpass|editor|pager|proxy|external|template)/,
	/^(electron_run_as_node|lua_(c?path|init).*|php_ini_scan_dir|phprc|r_profile.*|julia_.*|erl_.*|zdotdir|inputrc)$/,
	/^svc_/,
]

/** `values`: those of the record, by name. */
export function environmentOf(
	gatewayEnv: Readonly<NodeJS.ProcessEnv>,
	values: Readonly<Record<string, string>>,
): Record<string, string> {
	const system = process.platform === 'win32' ? [...inherited, ...inheritedOnWindows] : inherited
	const env: Record<string, string> = {}
	for (const name of [...system, ...certificates, ...proxiesFor(values)]) {
		const value = gatewayEnv[name]
		// Bash exports functions as variables, and an old bash runs what follows the function (Shellshock).
		if (value !== undefined && !value.startsWith('()') && !hasPassword(name, value)) env[name] = value
	}
	return { ...env, ...values }
}

/** Some programs prefer the upper case, others the lower case. So a variable of the record in either case replaces both. */
function proxiesFor(values: Readonly<Record<string, string>>): string[] {
	const named = new Set(Object.keys(values).map((name) => name.toUpperCase()))
	return proxies.filter((name) => !named.has(name.toUpperCase()))
}

/** Programs do not get proxy passwords: they may show their environment to a model. */
function hasPassword(name: string, value: string): boolean {
	return proxies.includes(name) && value.includes('@')
}

/** Throws `invalid_request` for a variable that no caller may set, whatever its scopes. */
export function checkVariable(name: string): void {
	const lower = name.toLowerCase()
	if (!codeRunning.some((pattern) => pattern.test(lower))) return
	throw new Fault('invalid_request', `env.${name} is refused: it can make programs run code other than the command`, {
		errors: [{ path: `env.${name}`, message: 'must not be a variable that makes programs run other code' }],
	})
}
