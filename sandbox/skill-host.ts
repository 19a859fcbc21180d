/**
 * The process in which the code of skills runs, one call at a time. It has no authority, and requests everything from the
 * main thread over one pipe (file descriptor 3). It ends when the pipe closes.
 *
 * It is not trusted: the main thread monitors it, and ends it after an invalid message.
 */
import { stripTypeScriptTypes } from 'node:module'
import { Socket } from 'node:net'
import { fromLines, overLimit, programLimits, toLine } from './host-protocol.ts'
import type {
	CheckOrder,
	FromHost,
	HostSettings,
	Program,
	ProgramOrder,
	ProgramOutcome,
	ToHost,
} from './host-protocol.ts'
import { memoryLine, openIsolate, Refusal } from './isolate.ts'
import type { FreshIsolate } from './isolate.ts'

/** The interval of checks of this process's memory and CPU time. */
const WATCH_MS = 10
/** The codes of errors in a program. */
const syntaxErrors = new Set<unknown>(['ERR_INVALID_TYPESCRIPT_SYNTAX', 'ERR_UNSUPPORTED_TYPESCRIPT_SYNTAX'])

const settings = JSON.parse(process.argv[2] ?? '') as HostSettings
const pipe = new Socket({ fd: 3 })
pipe.on('close', die)
pipe.on('error', die)
process.on('uncaughtException', die)
pipe.on(
	'data',
	fromLines((message) => receive(message as ToHost)),
)

/** The id of the current order. */
let current = 0
let next: FreshIsolate | undefined = fresh()
let used: FreshIsolate | undefined
send({ kind: 'ready' })

function receive(message: ToHost): void {
	switch (message.kind) {
		case 'run':
			return run(message)
		case 'check':
			return check(message)
		case 'reply':
			if (message.id !== current) return
			if (message.ok) used?.deliver(message.call, true, message.body)
			else used?.deliver(message.call, false, JSON.stringify({ code: message.code, message: message.message }))
	}
}

function run({ id, args, ...program }: ProgramOrder): void {
	current = id
	const isolate = (used = next ?? fresh())
	next = undefined
	// Of the whole process: the program runs in another thread, and V8 uses further ones for it.
	const before = process.cpuUsage()
	const watch = setInterval(() => {
		const { user, system } = process.cpuUsage(before)
		const outcome = overLimit(settings, { bytes: process.memoryUsage.rss(), cpu_ms: (user + system) / 1000 })
		if (outcome) end(outcome)
	}, WATCH_MS)
	try {
		isolate.load(strip(program))
		isolate.run(args, {
			called: (what, call, body) => send({ kind: 'call', id, call, what, body }),
			waits: (only) => send({ kind: only ? 'waits' : 'computes', id }),
			ended: end,
		})
	} catch (error) {
		end(refused(error))
	}

	function end(outcome: ProgramOutcome): void {
		if (current !== id) return
		current = 0
		clearInterval(watch)
		send({ kind: 'done', id, ...outcome })
		// After such an end the isolate may still be running, and this process is about to be ended.
		if (!outcome.ok && outcome.code.startsWith('sandbox_')) return
		isolate[Symbol.dispose]()
		used = undefined
		// For the next call, created while no call waits for it.
		next = fresh()
	}
}

function check({ id, ...program }: CheckOrder): void {
	current = id
	using isolate = next ?? fresh()
	next = undefined
	let outcome: ProgramOutcome = { ok: true, value: 'null' }
	try {
		isolate.load(strip(program))
	} catch (error) {
		outcome = refused(error)
	}
	current = 0
	send({ kind: 'done', id, ...outcome })
	next = fresh()
}

function refused(error: unknown): ProgramOutcome {
	if (error instanceof Refusal) return { ok: false, code: error.code, message: error.message }
	throw error
}

/** Converts TypeScript to JavaScript: types become blanks, so that lines and columns stay the same. Throws a `Refusal`. */
function strip({ code, language }: Program): string {
	if (language === 'javascript') return code
	try {
		return stripTypeScriptTypes(code)
	} catch (error) {
		const { message, stack = '' } = error instanceof Error ? error : new Error(String(error))
		if (!(error instanceof Error && 'code' in error && syntaxErrors.has(error.code))) {
			// The compiler itself failed, as it does on very deeply nested types, and it stays unusable for later programs of this
			// process.
			throw new Refusal('sandbox_crash', 'the TypeScript compiler failed on it')
		}
		// Node states the line only at the beginning of the stack.
		const line = /^:(\d+)\n/.exec(stack)?.[1]
		const text = explained(message.trim()).slice(0, programLimits.message_length)
		throw new Refusal('skill_invalid', line ? `line ${line}: ${text}` : text)
	}
}

function explained(message: string): string {
	const what = /^(?:TypeScript )?(.{1,100}?) (?:is|are) not supported in strip-only mode$/.exec(message)?.[1]
	return what === undefined ? message : `${what} cannot be used here: types are only removed, nothing is compiled`
}

function fresh(): FreshIsolate {
	return openIsolate(settings.memory_mib, () => {
		const message = memoryLine(settings.memory_mib)
		send({ kind: 'done', id: current, ok: false, code: 'sandbox_memory', message })
	})
}

function send(message: FromHost): void {
	pipe.write(toLine(message))
}

/** Not process.exit, which waits for threads that may never stop. */
function die(): void {
	process.kill(process.pid, 'SIGKILL')
}
