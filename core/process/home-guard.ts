/** Keeps a running gateway from applying changes that another user could have made. */
import { existsSync } from 'node:fs'
import type { Logger } from '../log/log.ts'
import { isAllowed, refuseShared, sharedIn, sharedPlaces } from './shared-home.ts'

/** Time between two checks of whether the operator has fixed the modes of refused files. */
const RECHECK_MS = 1_000

export interface GuardOptions {
	home: string
	env: Readonly<NodeJS.ProcessEnv>
	log: Logger
	/** Called once all modes are fixed: changing a mode changes no file, so no watcher reports it. */
	modesFixed: () => void
	/** False until the gateway has started; `modesFixed` waits for it. */
	isReady: () => boolean
}

export function guardHome({ home, env, log, modesFixed, isReady }: GuardOptions) {
	/** Folders of plugins that were refused. */
	const refused = new Set<string>()
	const warned = new Set<string>()
	let homeIsRefused = false
	let timer: NodeJS.Timeout | undefined

	const isShared = (folder: string): boolean => {
		try {
			return sharedIn(folder, home) !== undefined
		} catch {
			return existsSync(folder) // all or some of its files were removed meanwhile
		}
	}
	const recheck = (): void => {
		if (!isReady() || (homeIsRefused && sharedPlaces(home).length > 0)) return
		for (const folder of refused) if (isShared(folder)) return
		clearInterval(timer)
		timer = undefined
		homeIsRefused = false
		refused.clear()
		modesFixed()
	}
	const wait = (): void => {
		timer ??= setInterval(recheck, RECHECK_MS).unref()
	}

	return {
		/** Throws `config_invalid` if others can write to the home now. */
		check(): void {
			homeIsRefused = !isAllowed(env) && sharedPlaces(home).length > 0
			if (!homeIsRefused) return
			wait()
			refuseShared(home, env)
		},
		/** Why a plugin in this folder must not run; undefined if it may. */
		refusal(this: void, folder: string): string | undefined {
			const place = sharedIn(folder, home)
			if (!place) return undefined
			const problem = `${place.problem}, and a user who can write there can run code as this user`
			if (!isAllowed(env)) {
				refused.add(folder)
				wait()
				return `${problem}; run: ${place.fix}`
			}
			if (!warned.has(folder)) log.warn(problem)
			warned.add(folder)
			return undefined
		},
		[Symbol.dispose]: () => clearInterval(timer),
	}
}
