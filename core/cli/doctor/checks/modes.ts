/** Who may read the home and the keys, and who can write to plugins. */
import { constants, existsSync } from 'node:fs'
import { open, readdir, realpath } from 'node:fs/promises'
import { join, resolve, sep } from 'node:path'
import { error, note, ok, warning } from '../contract.ts'
import type { Check, Finding } from '../contract.ts'
import { isBuiltIn } from '../../../util/own-files.ts'
import { quoted } from '../../../util/quoted.ts'
import { OVERRIDE, isAllowed, sharedIn, sharedPlaces } from '../../../process/shared-home.ts'
import type { SharedPlace } from '../../../process/shared-home.ts'
import { MOST_KEYS, statOf } from '../stat-of.ts'

export const modeChecks: Check[] = [
	{
		id: 'home.mode',
		about: 'who may read the home folder, and who can write to it',
		async run({ home, env }) {
			const real = await realpath(home).catch(() => home)
			const found = await statOf(real)
			if (!found) return note(`there is no home folder ${home} yet`, 'create one: svc init')
			if (!found.isDirectory()) return error(`${home} is not a folder`, 'set SVC_HOME to a folder for the gateway')
			const shared = sharedPlaces(home)
			if (shared.length > 0) return shared.map((place) => writable(place, real, env))
			return isOpen(found.mode) ? opened(real, found.mode, 0o700) : ok(`${home} is closed to other users`)
		},
	},
	{
		id: 'keys.mode',
		about: 'who may read the keys',
		async run({ home }) {
			const folder = join(home, 'keys')
			const names = await readdir(folder).catch(() => undefined)
			if (!names) return []
			const paths = [folder, ...names.slice(0, MOST_KEYS).map((name) => join(folder, name))]
			// If `keys` is a link, only the operator may restrict its target: others may need it, such as /etc.
			const isOwn = (await statOf(folder))?.isDirectory() === true
			const findings: Finding[] = []
			for (const path of paths) {
				const found = await statOf(path)
				if (!found || !(found.isDirectory() || found.isFile()) || !isOpen(found.mode)) continue
				findings.push(opened(path, found.mode, found.isFile() ? 0o600 : 0o700, { isKey: true, isOwn }))
			}
			return findings.length > 0 ? findings : ok('the keys are closed to other users')
		},
	},
	{
		id: 'plugins.mode',
		about: 'who can write to the folders of third-party plugins',
		async run({ home, env, config }) {
			const { plugins } = await config()
			const findings = Object.entries(plugins).flatMap(([name, entry]): Finding[] => {
				const { enabled = true, path = name } = typeof entry === 'object' ? entry : { enabled: entry }
				const folder = resolve(join(home, 'plugins'), path)
				if (!enabled || isBuiltIn(name) || !existsSync(folder)) return []
				const place = sharedIn(folder, home)
				if (!place) return []
				if (isAllowed(env)) return [warning(`plugin ${name}: ${place.problem}`, `run: ${place.fix}`)]
				return [error(`plugin ${name} is not loaded: ${place.problem}`, `run: ${place.fix}`)]
			})
			return findings.length > 0 ? findings : ok('only their owner can write to the folders of plugins')
		},
	},
]

/** A place because of which the gateway does not start. */
function writable({ path, kind, problem, fix }: SharedPlace, home: string, env: Readonly<NodeJS.ProcessEnv>): Finding {
	const isInside = path === home || path.startsWith(home + sep)
	// The operator decides about a link's target outside the home: others may need to write there.
	const act = kind === 'mode' && isInside ? closing(home, 0o700) : undefined
	const todo = act ? `run: ${fix}, or svc doctor --fix` : `run: ${fix}`
	if (isAllowed(env)) return warning(`${problem}; ${OVERRIDE} lets the gateway start anyway`, todo, act)
	return error(`${problem}, so the gateway does not start`, todo, act)
}

function isOpen(mode: number): boolean {
	// Windows has no such modes.
	return process.platform !== 'win32' && (mode & 0o077) !== 0
}

function opened(path: string, mode: number, wanted: number, { isKey = false, isOwn = true } = {}): Finding {
	const problem = `${path} is open to other users of this machine (${octal(mode & 0o777)})`
	const todo = `close it: chmod ${octal(wanted).slice(1)} ${quoted(path)}${isOwn ? ', or svc doctor --fix' : ''}`
	if (!isKey) return warning(problem, todo, closing(path, wanted))
	return error(problem, `${todo}; replace keys that others read`, isOwn ? closing(path, wanted) : undefined)
}

/** Does not follow a link: one may have replaced the path meanwhile. */
function closing(path: string, mode: number): () => Promise<string> {
	return async () => {
		await using handle = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW)
		await handle.chmod(mode)
		return `${path} is now ${octal(mode)}`
	}
}

function octal(mode: number): string {
	return mode.toString(8).padStart(4, '0')
}
