/** Whether the home's gateway has applied a change of gateway.yaml. */
import { setTimeout as pause } from 'node:timers/promises'
import type { Change } from '../../config/write.ts'
import { readText } from '../host/config.ts'
import { digestOf, readRuntimeFile, runtimeFileVersion } from '../process/runtime-file.ts'
import type { RuntimeFile } from '../process/runtime-file.ts'
import { isFault } from '../errors.ts'
import { holderOf } from '../process/lock.ts'
import { CliError } from './contract.ts'
import type { Cli } from './contract.ts'

/**
 * - `in_force`: it uses the current file
 * - `refused`: it does not; `why` is its error
 * - `late`: it has reported neither within the time limit
 * - `waits`: it is a waiting gateway on a cluster; the working one uses the file in its own home
 */
export type Applied =
	| ({ state: 'in_force' } & Pick<RuntimeFile, 'trouble'> & Pick<RuntimeFile['settings'], 'variables'>)
	| { state: 'refused'; why: string }
	| { state: 'late' | 'waits' }

export const noWaitOption = { '--no-wait': 'do not wait until a running gateway has applied the change' } as const

/** Most changes take 0.2 s, but a third-party plugin may start slowly. */
const LIMIT_MS = 30_000
const POLL_MS = 30

/**
 * Waits until the gateway has read the current file, for at most 30 s. Null if no gateway runs with this home. Throws
 * `interrupted` after Ctrl-C. `before`: the version of the runtime file before the change, for one that leaves gateway.yaml as it is.
 */
export async function waitUntilApplied({ home, signal }: Cli, file: string, before?: string): Promise<Applied | null> {
	if ((await holderOf(home)) === null) return null
	for (const end = performance.now() + LIMIT_MS; performance.now() < end;) {
		const isSame = before !== undefined && runtimeFileVersion(home) === before
		const { settings, role, trouble = {} } = readRuntimeFile(home) ?? {}
		if (role === 'waiting') return { state: 'waits' }
		if (!isSame && settings?.digest && settings.digest === digestNow(file)) {
			const { refused, variables } = settings
			return refused === null ? { state: 'in_force', variables, trouble } : { state: 'refused', why: refused }
		}
		await pause(POLL_MS, undefined, { signal }).catch((error: unknown) => {
			throw new CliError('interrupted', '', { cause: error })
		})
	}
	return (await holderOf(home)) === null ? null : { state: 'late' }
}

/** Warns of what still keeps the gateway from applying a changed file. */
export function warnOfRemaining({ out }: Cli, { problems }: Change): void {
	for (const { path, message } of problems) out.note(out.style.warn(`still wrong in the file: ${path}: ${message}`))
}

/** Ends a command whose change is not in force: throws if it was refused, else prints a note. */
export function reportUnapplied({ out }: Cli, applied: Applied | null): void {
	if (applied?.state === 'refused')
		throw new CliError(
			'config',
			`the running gateway refuses the file as it is now, and keeps its settings until you correct or undo the change:\n${applied.why}`,
		)
	if (applied?.state === 'waits')
		out.note(
			out.style.warn(
				'The gateway of this home waits, and applies it when it takes over. Make the same change on every gateway: the working one uses the file in its own home.',
			),
		)
	if (applied?.state === 'late')
		out.note(
			out.style.warn(
				`The running gateway has not applied it within ${LIMIT_MS / 1000} s; "svc status" shows whether it has.`,
			),
		)
}

/** Read again each time, since someone else may change the file meanwhile. Undefined if it cannot be read: the gateway reports that. */
function digestNow(file: string): string | undefined {
	try {
		return digestOf(readText(file))
	} catch (error) {
		if (isFault(error)) return undefined
		throw error
	}
}
