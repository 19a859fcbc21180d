/** Finds the third-party plugin that caused an uncaught error. */
import { subscribe } from 'node:diagnostics_channel'
import { errorMonitor } from 'node:events'
import type { EventEmitter } from 'node:events'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { getCallSites } from 'node:util'
import { isFault } from '../errors.ts'
import { ownerNow } from './context.ts'
import type { Owner } from './context.ts'

export interface Culprit {
	owner: Owner
	/** The gateway's code may be at fault: the error is not an expected failure, and its stack has no plugin's code. */
	isOurs: boolean
}

/** Whose error this is: by the code in its stack, else by the context in which it was thrown. Never throws. */
export function culpritOf(error: unknown): Culprit {
	const frames = framesOf(error)
	const byCode = ownerAt(frames)
	if (byCode !== undefined) return { owner: byCode, isOurs: false }
	const owner = (error instanceof Error ? bySocket.get(error) : undefined) ?? ownerNow()
	const isBug = !isFault(error) && (frames.includes(ROOT_URL) || frames.includes(ROOT))
	return { owner, isOurs: owner === undefined || isBug }
}

/**
 * The plugin whose code calls this, directly or indirectly; else the one on whose behalf it runs. Does not read `Error.stack`: in a
 * bundle, that would load a source map, which takes 0.2 s.
 */
export function callerNow(): Owner {
	const sites = getCallSites(FRAMES)
	return ownerAt(sites.map(({ scriptName }) => scriptName).join('\n')) ?? ownerNow()
}

const FRAMES = 50
const ROOT_URL = new URL('../../', import.meta.url).href
const ROOT = fileURLToPath(ROOT_URL)
const CAUSES = 5

/** The plugins' folders as stack frames show them: modules by URL, CommonJS by path. Grows with the number of folders ever loaded. */
const folders = new Map<string, string>()
const bySocket = new WeakMap<Error, string>()
let watchesSockets = false

/** Declares that code in `folder`, a real path, belongs to that plugin. */
export function ownFolder(folder: string, plugin: string): void {
	folders.set(`${pathToFileURL(folder).href}/`, plugin)
	folders.set(`${folder}/`, plugin)
	if (watchesSockets) return
	watchesSockets = true
	// A socket that a server accepts has no context, and its errors have no stack. This event is emitted in the server's context.
	subscribe('net.server.socket', (message) => {
		const owner = ownerNow()
		if (owner === undefined) return
		const { socket } = message as { socket: EventEmitter }
		socket.on(errorMonitor, (error: unknown) => {
			if (error instanceof Error) bySocket.set(error, owner)
		})
	})
}

/** The plugin whose code is nearest to the top of the stack. */
function ownerAt(frames: string): string | undefined {
	let owner: string | undefined
	let nearest = Infinity
	for (const [folder, plugin] of folders) {
		const at = frames.indexOf(folder)
		if (at < 0 || at >= nearest) continue
		nearest = at
		owner = plugin
	}
	return owner
}

/** The frames of the stacks of an error and its causes, without messages, which may contain anything. */
function framesOf(error: unknown): string {
	const stacks: string[] = []
	try {
		let cause = error
		for (let i = 0; i < CAUSES && cause instanceof Error; i++) {
			stacks.push(String(cause.stack))
			cause = cause.cause
		}
	} catch {
		// A getter of the error threw.
	}
	return stacks
		.flatMap((stack) => stack.split('\n'))
		.filter((line) => /^\s+at /.test(line))
		.join('\n')
}
