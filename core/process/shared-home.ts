/**
 * Checks whether other users can write to the home. A user who can write to its settings or plugins can run code as the gateway's
 * user, so the start, a reload, the plugin loader and the doctor all use this check.
 *
 * The rule: a home that no other user can enter (mode 0700) protects everything in it, whatever the modes inside. In any other
 * home, and outside the home, each file is checked. Links are followed to the real file.
 */
import { realpathSync, statSync } from 'node:fs'
import type { Stats } from 'node:fs'
import { join, sep } from 'node:path'
import { Fault } from '../errors.ts'
import { entriesIn } from '../util/entries-in.ts'
import { quoted } from '../util/quoted.ts'
import { root } from './handover.mjs'

/** A file or folder that other users can write to. */
export interface SharedPlace {
	/** The real path, links resolved. */
	path: string
	/** `mode`: its permissions let others write. `owner`: it belongs to another user. */
	kind: 'mode' | 'owner'
	/** One clause, with the path: `/srv/svc (mode 0777) is writable by every user of this machine`. */
	problem: string
	/** The command that fixes it. */
	fix: string
}

/** `1` lets a gateway start although others can write to its home. */
export const OVERRIDE = 'SVC_ALLOW_SHARED_HOME'

/** Entries of a plugin's folder, node_modules included. */
const ENTRY_LIMIT = 20_000
const parts = ['config', 'config/gateway.yaml', 'plugins', 'keys', 'data', 'run', 'skills', 'encoder']

/** Checks the home, the gateway's folders in it and gateway.yaml, as far as they exist; empty if only the owner can write. */
export function sharedPlaces(home: string): SharedPlace[] {
	if (process.platform === 'win32') return [] // has no such modes
	const rule = ruleOf(home)
	const found = [home, ...parts.map((part) => join(home, part))].flatMap((path) => placeOf(path, rule) ?? [])
	return found.filter(({ path }, at) => found.findIndex((other) => other.path === path) === at)
}

/** The first entry of a plugin's folder that others can write to; undefined if there is none. */
export function sharedIn(folder: string, home: string): SharedPlace | undefined {
	if (process.platform === 'win32') return undefined
	const rule = ruleOf(home)
	const real = realpathSync(folder)
	if (rule.protects(real)) return undefined
	const whole = placeOf(real, rule, real)
	if (whole) return whole
	let count = 0
	// A plugin may link to the gateway, whose code this process runs already.
	for (const name of entriesIn(real, (_, folder) => !`${folder}${sep}`.startsWith(root))) {
		if (++count > ENTRY_LIMIT) {
			const problem = `${real} holds more than ${ENTRY_LIMIT} files, too many to check who can write to them`
			return { path: real, kind: 'mode', problem, fix: rule.fixFor(real) }
		}
		const place = placeOf(join(real, name), rule, real)
		if (place) return place
	}
	return undefined
}

/**
 * Throws `config_invalid` with the commands to run if others can write to the home. With the override in the
 * environment it returns the same as a warning; null if nothing is wrong.
 */
export function refuseShared(home: string, env: Readonly<NodeJS.ProcessEnv>): string | null {
	const places = sharedPlaces(home)
	if (places.length === 0) return null
	const problems = places.map(({ problem }) => problem).join('; ')
	const commands = [...new Set(places.map(({ fix }) => fix))]
	if (isAllowed(env))
		return `${OVERRIDE} is set, although ${problems}: anyone who can write there can run code as this user`
	throw new Fault(
		'config_invalid',
		`${problems}. Anyone who can write there can run code as this user.\nRun: ${commands.join(' && ')}\n(${OVERRIDE}=1 lets it start anyway.)`,
	)
}

/** Whether the operator has allowed a home that others can write to. */
export function isAllowed(env: Readonly<NodeJS.ProcessEnv>): boolean {
	return env[OVERRIDE] === '1'
}

/** The place because of which the code of a plugin in this folder must not run; undefined if it may. */
export function refusedPlace(
	folder: string,
	{ home, env }: { home: string; env: Readonly<NodeJS.ProcessEnv> },
): SharedPlace | undefined {
	return isAllowed(env) ? undefined : (sharedPlaces(home)[0] ?? sharedIn(folder, home))
}

interface Rule {
	trusted: ReadonlySet<number>
	/** Whether this real path is in a home that no other user can enter. */
	protects(path: string): boolean
	/** The command that fixes the mode of a path. */
	fixFor(path: string, tree?: string): string
}

function ruleOf(home: string): Rule {
	const self = process.getuid?.() ?? 0
	const found = statOf(home)
	const real = found ? realpathSync(home) : home
	const isClosed = found !== undefined && (found.mode & 0o011) === 0
	const isInside = (path: string): boolean => path === real || path.startsWith(real + sep)
	// Root may run the gateway of another user, who may write to it.
	const owners = self === 0 && found ? [found.uid] : []
	const sudo = (owner: number | undefined): string => (self === 0 || owner === self ? '' : 'sudo ')
	/** Restricting a folder that belongs to root would lock this user out, so the command changes its owner first. */
	const owning = found && sudo(found.uid) !== '' ? `sudo chown -R ${self} ${quoted(real)} && ` : ''
	return {
		trusted: new Set([0, self, ...owners]),
		protects: (path) => isClosed && isInside(path) && path !== real,
		fixFor(path, tree) {
			if (isInside(path)) return `${owning}chmod 700 ${quoted(real)}`
			return `${sudo(statOf(path)?.uid)}chmod ${tree === undefined ? '' : '-R '}go-w ${quoted(tree ?? path)}`
		},
	}
}

/** `tree`: the folder to which the command applies as a whole. */
function placeOf(path: string, rule: Rule, tree?: string): SharedPlace | undefined {
	const found = statOf(path)
	if (!found) return undefined
	const real = realpathSync(path)
	if (rule.protects(real)) return undefined
	if (!rule.trusted.has(found.uid)) {
		const self = process.getuid?.() ?? 0
		const problem = `${real} belongs to another user (id ${found.uid})`
		return { path: real, kind: 'owner', problem, fix: `sudo chown -R ${self} ${quoted(real)}` }
	}
	const who = othersOf(found)
	if (who === undefined) return undefined
	const mode = (found.mode & 0o7777).toString(8).padStart(4, '0')
	const problem = `${real} (mode ${mode}) is writable by ${who}`
	return { path: real, kind: 'mode', problem, fix: rule.fixFor(real, tree) }
}

/** Who can write to it besides its owner. Writing to a folder requires the right to enter it as well. */
function othersOf(found: Stats): string | undefined {
	const needed = found.isDirectory() ? 0o3 : 0o2
	const allows = (shift: number): boolean => ((found.mode >> shift) & needed) === needed
	if (allows(0)) return 'every user of this machine'
	return allows(3) ? `its group (id ${found.gid})` : undefined
}

/** The status of the real file. Undefined if there is none, or if this user may not see it. */
function statOf(path: string): Stats | undefined {
	try {
		return statSync(path)
	} catch {
		return undefined
	}
}
