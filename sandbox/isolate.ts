/**
 * One isolate: created in advance, used for one program, then disposed. Only text and numbers cross its boundary.
 *
 * Compiling, linking and passing the arguments run on this thread, since they are short and call no code of the program. The program
 * runs on a separate thread, so this one stays free to supervise it.
 */
import ivm from 'isolated-vm'
import { programLimits } from './host-protocol.ts'
import type { HostCallKind, HostFailure, ProgramOutcome } from './host-protocol.ts'
import { bridge } from './bridge.ts'
import type { Bridge, PostKind } from './bridge.ts'
import { addGlobals } from './globals.ts'
import { hostTool } from './host-tools.ts'
import { addUrls } from './urls.ts'

/** Receives the calls and the outcome of a program. `text` is JSON. */
export interface Surroundings {
	/** `call`: the number of the call; the answer is passed to `deliver` with it. */
	called(what: HostCallKind, call: number, text: string): void
	/** True: the program only waits for answers and timers; false: it computes again. Alternates. */
	waits(only: boolean): void
	/** Called once, when no code of the program runs any more. */
	ended(outcome: ProgramOutcome): void
}

export type FreshIsolate = ReturnType<typeof openIsolate>

/** The program cannot run; the message states where and why. */
export class Refusal extends Error {
	readonly code: HostFailure
	constructor(code: HostFailure, message: string) {
		super(message)
		this.code = code
	}
}

const FILE = 'skill.js'

/** The code that is evaluated in each isolate before the program. */
const inner = `'use strict'
const inside = (${bridge.toString()})($0, $1, $2);
(${addGlobals.toString()})(inside, $3);
(${addUrls.toString()})($3);
globalThis.start = inside.start
return inside`
const entryCode = 'import run from "program"; import { start } from "keeper"; start(run)'
const keeperCode = 'export const start = globalThis.start; delete globalThis.start'
export const memoryLine = (mib: number): string => `it needs more than ${mib} MiB of memory (skills.memory_mib)`

/** `onFatal` is called when V8 has lost the isolate, and with it the process: it can still send one message. */
export function openIsolate(memory_mib: number, onFatal: () => void) {
	const isolate = new ivm.Isolate({ memoryLimit: memory_mib, onCatastrophicError: onFatal })
	const context = isolate.createContextSync()
	const timers = new Map<number, NodeJS.Timeout>()
	let surroundings: Surroundings | undefined
	let outcome: ProgramOutcome | undefined
	/** The last error or rejection that the program did not catch: the reason if it never returns a result. */
	let uncaught = ''
	/** Unfinished tasks in the isolate. */
	let busy = 0
	/** Calls without an answer. */
	let open = 0
	let isWaiting = false

	const inside = context.evalClosureSync(
		inner,
		[
			new ivm.Callback(posted),
			// For the outcome, after which there are no messages: not awaited. It arrives before the end of the task that sent it.
			new ivm.Callback(posted, { ignored: true }),
			JSON.stringify(programLimits),
			new ivm.Callback(hostTool),
		],
		{ result: { reference: true } },
	) as ivm.Reference<Bridge>
	const arm = inside.getSync('arm', { reference: true })
	const deliver = inside.getSync('deliver', { reference: true })
	// A module calls the program's default export, so that the program needs no global.
	const keeper = isolate.compileModuleSync(keeperCode)
	keeper.instantiateSync(context, never)
	keeper.evaluateSync()
	const entry = isolate.compileModuleSync(entryCode)

	/** Called on this thread while the program's thread waits, so the program cannot post faster than this handles. */
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

	/** Runs code of the program with all its microtasks, then checks whether the program is over. */
	function enter(task: () => Promise<unknown>): void {
		busy++
		if (isWaiting) surroundings?.waits((isWaiting = false))
		// The error comes from the program: only its text is used.
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
		/** Starts the loaded program; `args` is JSON. Throws a `Refusal`. */
		run(args: string, itsSurroundings: Surroundings): void {
			try {
				arm.applySync(undefined, [args])
			} catch (error) {
				throw refusalOf(error)
			}
			surroundings = itsSurroundings
			enter(() => entry.evaluate())
		},
		/** Delivers the answer to a call: JSON, `{code, message}` if it failed. */
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

/** Explains frequent mistakes of people who write programs for Node. */
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
