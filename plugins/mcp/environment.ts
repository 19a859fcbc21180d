/** The environment of a server's process: a few safe variables, and those in its record. */
import { Fault } from '../../core/errors.ts'

const inherited = ['HOME', 'PATH', 'LANG', 'TERM', 'USER', 'LOGNAME', 'SHELL', 'TMPDIR']
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

/** The base of every environment. */
export function baseEnvironment(own: Readonly<NodeJS.ProcessEnv>): Record<string, string> {
	const names = process.platform === 'win32' ? [...inherited, ...inheritedOnWindows] : inherited
	const base: Record<string, string> = {}
	for (const name of names) {
		const value = own[name]
		// Bash passes functions on in variables, and runs what follows them.
		if (value !== undefined && !value.startsWith('()')) base[name] = value
	}
	return base
}

/** Throws `invalid_request` for a variable that no caller may set. */
export function checkVariable(name: string): void {
	const lower = name.toLowerCase()
	if (!codeRunning.some((pattern) => pattern.test(lower))) return
	throw new Fault('invalid_request', `env.${name} is refused: it can make programs run code other than the command`, {
		errors: [{ path: `env.${name}`, message: 'must not be a variable that makes programs run other code' }],
	})
}
