/**
 * One isolate: made ahead, used for one program, thrown away. Only text and numbers cross its boundary.
 *
 * What runs in it for its maker (compile, link, hand over the arguments) runs on this thread, since it is short and calls
 * nothing of the program's. The program runs on a thread of its own: this thread stays free to watch it.
 */
import ivm from 'isolated-vm'
import { programLimits } from './host-protocol.ts'
import type { HostCallKind, HostFailure, ProgramOutcome } from './host-protocol.ts'
import { bridge } from './bridge.ts'
import type { Bridge, PostKind } from './bridge.ts'
import { addGlobals } from './globals.ts'
import { hostTool } from './host-tools.ts'
import { addUrls } from './urls.ts'

/** What a program asks of its surroundings. `text` is JSON. */
export interface Surroundings {
	/** `call` numbers it; the answer goes to `deliver`. */
	called(what: HostCallKind, call: number, text: string): void
	/** True: it only waits for answers and timers; false: it computes again. Called in turns. */
	waits(only: boolean): void
	/** Once, when nothing of the program runs any more. */
	ended(outcome: ProgramOutcome): void
}

export type FreshIsolate = ReturnType<typeof openIsolate>

/** The program cannot run; the message says where and why. */
export class Refusal extends Error {
	readonly code: HostFailure
	constructor(code: HostFailure, message: string) {
		super(message)
		this.code = code
	}
}

const FILE = 'skill.js'

/** What is evaluated in each isolate before the program. */
const inner = `'use strict'
const inside = (${bridge.toString()})($0, $1, $2);
(${addGlobals.toString()})(inside, $3);
(${addUrls.toString()})($3);
globalThis.start = inside.start
return inside`
const entryCode = 'import run from "program"; import { start } from "keeper"; start(run)'
const keeperCode = 'export const start = globalThis.start; delete globalThis.start'
export const memoryLine = (mib: number): string => `it needs more than ${mib} MiB of memory (skills.memory_mib)`

/** `onFatal`: V8 has lost the isolate, and with it the process; this is its last message. */
export function openIsolate(memory_mib: number, onFatal: () => void) {
	const isolate = new ivm.Isolate({ memoryLimit: memory_mib, onCatastrophicError: onFatal })
	const context = isolate.createContextSync()
	const timers = new Map<number, NodeJS.Timeout>()
	let surroundings: Surroundings | undefined
	let outcome: ProgramOutcome | undefined
	/** Why a program that answers nothing stands still: the last rejection or error that it did not catch. */
	let uncaught = ''
	/** Tasks in the isolate that have not come to their end. */
	let busy = 0
	/** Calls without an answer. */
	let open = 0
	let isWaiting = false

	const inside = context.evalClosureSync(
		inner,
		[
			new ivm.Callback(posted),
			// For the one message that nothing follows: it does not wait. It arrives before the end of the task that sent it.
			new ivm.Callback(posted, { ignored: true }),
			JSON.stringify(programLimits),
			new ivm.Callback(hostTool),
		],
		{ result: { reference: true } },
	) as ivm.Reference<Bridge>
	const arm = inside.getSync('arm', { reference: true })
	const deliver = inside.getSync('deliver', { reference: true })
	// Only a module can call what another module exports by default, so that the program needs no global to be found.
	const keeper = isolate.compileModuleSync(keeperCode)
	keeper.instantiateSync(context, never)
	keeper.evaluateSync()
	const entry = isolate.compileModuleSync(entryCode)

	/** Called on this thread while the program waits in its own: it cannot post faster than this takes. */
	function posted(what: PostKind, call: number, text: string): void {
		if (outcome || !surroundings) return
		switch (what) {
			case 'done':
				outcome = { ok: true, value: text }
				return
			case 'failed':
				outcome = { ok: false, code: 'skill_failed', message: explained(text) }
				return
			case 'invalid':
				outcome = { ok: false, code: 'skill_invalid', message: text }
				return
			case 'sleep':
				timers.set(call, setTimeout(due, Number(text), call))
				return
			case 'wake':
				clearTimeout(timers.get(call))
				timers.delete(call)
				return
			case 'log':
				return surroundings.called(what, call, text)
			default:
				open++
				surroundings.called(what, call, text)
		}
	}

	function due(timer: number): void {
		timers.delete(timer)
		enter(() => deliver.apply(undefined, [timer, true, '']))
	}

	/** Runs something of the program's, with all that follows from it, and looks afterwards whether anything is left. */
	function enter(task: () => Promise<unknown>): void {
		busy++
		if (isWaiting) surroundings?.waits((isWaiting = false))
		// What it rejects with is the program's: its text is taken, and nothing more.
		const failed = (error: unknown): void => {
			uncaught = error instanceof Error ? String(error.message) : ''
		}
		void task()
			.catch(failed)
			.then(() => {
				busy--
				if (busy === 0) end()
			})
	}

	function end(): void {
		if (!surroundings) return
		if (isolate.isDisposed) outcome = { ok: false, code: 'sandbox_memory', message: memoryLine(memory_mib) }
		else if (!outcome) {
			if (open > 0 || timers.size > 0) return surroundings.waits((isWaiting = true))
			const why = uncaught || 'it waits for a promise that never settles'
			outcome = { ok: false, code: 'skill_failed', message: explained(why) }
		}
		const { ended } = surroundings
		surroundings = undefined
		ended(outcome)
	}

	function refusalOf(error: unknown): Refusal {
		if (error instanceof Refusal) return error
		if (isolate.isDisposed) return new Refusal('sandbox_memory', memoryLine(memory_mib))
		return new Refusal('skill_invalid', whatIsWrong(error))
	}

	return {
		/** Compiles and links; nothing of the program runs. Throws a `Refusal`. */
		load(code: string): void {
			try {
				const program = isolate.compileModuleSync(code, { filename: FILE })
				const [imported] = program.dependencySpecifiers
				if (imported !== undefined) {
					throw new Refusal('skill_invalid', `it imports "${imported.slice(0, 200)}"; a program imports nothing`)
				}
				entry.instantiateSync(context, (name) => (name === 'program' ? program : keeper))
			} catch (error) {
				throw refusalOf(error)
			}
		},
		/** Begins the program that was loaded; `args` is JSON. Throws a `Refusal`. */
		run(args: string, its: Surroundings): void {
			try {
				arm.applySync(undefined, [args])
			} catch (error) {
				throw refusalOf(error)
			}
			surroundings = its
			enter(() => entry.evaluate())
		},
		/** The answer to a call: JSON, `{code, message}` where it failed. */
		deliver(call: number, ok: boolean, text: string): void {
			if (!surroundings || open === 0) return
			open--
			enter(() => deliver.apply(undefined, [call, ok, text]))
		},
		[Symbol.dispose](): void {
			surroundings = undefined
			for (const timer of timers.values()) clearTimeout(timer)
			if (!isolate.isDisposed) isolate.dispose()
		},
	}
}

function never(): never {
	throw new Error('there is nothing to import')
}

/** What people try who know programs from elsewhere. */
function explained(text: string): string {
	return text
		.replace(/\brequire is not defined\b/, '$& (a program has no modules, only svc)')
		.slice(0, programLimits.message_length)
}

/** V8's message with the place: isolated-vm appends it as `[skill.js:3:14]`. */
function whatIsWrong(error: unknown): string {
	const text = error instanceof Error ? error.message : String(error)
	if (text.includes("does not provide an export named 'default'"))
		return 'it has no default export; export default async (args, svc) => …'
	const place = /\[skill\.js:(\d+):(\d+)\]/.exec(text)
	const bare = text.replace(/ ?\[[^\]]*:\d+:\d+\]$/, '').slice(0, programLimits.message_length)
	return place ? `line ${place[1]}, column ${place[2]}: ${bare}` : bare
}
