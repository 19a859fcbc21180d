/** One skill host: a process that executes one order at a time, over a pipe. */
import { spawn } from 'node:child_process'
import type { Duplex } from 'node:stream'
import { fromLines, programLimits, toLine } from '../../sandbox/host-protocol.ts'
import type {
	CallMessage,
	CheckOrder,
	HostFailure,
	ProgramOrder,
	ProgramOutcome,
	ToHost,
} from '../../sandbox/host-protocol.ts'
import type { HostCommand } from './host-command.ts'

export interface Host {
	readonly pid: number
	/** Settles when the host accepts orders; rejects if it ends before. */
	readonly ready: Promise<void>
	/** False after the process has ended or was told to end. */
	readonly alive: boolean
	/**
	 * Settles with the outcome of the order: `sandbox_crash` if the host ends or violates the protocol. `asked`: handles a call of the
	 * program; false if the call violates the protocol. `waits`: called when the program begins to wait only (true), or computes again.
	 */
	work(
		order: ProgramOrder | CheckOrder,
		asked: (message: CallMessage) => boolean,
		waits?: (only: boolean) => void,
	): Promise<ProgramOutcome>
	/** Settles when the process has read the message, or has ended. */
	send(message: ToHost): Promise<void>
	/** Kills the process. `why`: the outcome of the current order. */
	end(why?: ProgramOutcome): void
	/** Settles when the process has ended. */
	readonly gone: Promise<void>
}

const codes = new Set<unknown>(['skill_failed', 'skill_invalid', 'sandbox_timeout', 'sandbox_memory', 'sandbox_crash'])
const kinds = new Set<unknown>(['primitive', 'fetch', 'secret', 'log'])
/** Limit of late messages about an ended order: more than a correct host sends. */
const MAX_LATE = programLimits.calls + programLimits.log_lines
/** Limit of changes between waiting and computing: at most one of each per call and timer. */
const MAX_CHANGES = 2 * programLimits.calls + 2
const crashed = (how: string): ProgramOutcome => ({ ok: false, code: 'sandbox_crash', message: `its process ${how}` })

/** Throws if no pipes can be made. */
export function startHost({ file, args, env, cwd, program }: HostCommand): Host {
	const child = spawn(file, args, {
		stdio: ['pipe', 'ignore', 'ignore', 'pipe'],
		env,
		cwd,
		windowsHide: true,
		// A terminal sends Ctrl-C to the process group, but a call may still complete while the gateway stops.
		detached: process.platform !== 'win32',
	})
	const pipe = child.stdio?.[3] as Duplex | undefined
	if (!pipe) {
		child.on('error', () => {}) // reports the same
		throw new Error('the gateway has too many open files')
	}
	child.stdin?.on('error', () => {}) // its exit event has the reason
	child.stdin?.end(program)
	const ready = Promise.withResolvers<void>()
	const gone = Promise.withResolvers<void>()
	let alive = true
	let readies = 0
	let lateMessages = 0
	let job:
		| {
				id: number
				asked: (message: CallMessage) => boolean
				waits: ((only: boolean) => void) | undefined
				isWaiting: boolean
				changes: number
				settle: (outcome: ProgramOutcome) => void
		  }
		| undefined
	ready.promise.catch(() => {}) // its callers handle it; there may be none

	const settle = (outcome: ProgramOutcome): void => {
		job?.settle(outcome)
		job = undefined
	}
	const end = (why: ProgramOutcome = crashed('was ended')): void => {
		alive = false
		child.kill('SIGKILL')
		settle(why)
	}
	const onExit = (how: string): void => {
		alive = false
		pipe.destroy()
		ready.reject(new Error(`the skill host ${how} before it was ready`))
		gone.resolve()
		settle(crashed(how))
	}
	child.on('exit', (code, signal) => onExit(signal ? `was killed by ${signal}` : `ended with code ${code}`))
	child.on('error', (error) => onExit(`could not be started: ${error.message}`))
	pipe.on('error', () => {}) // its exit event has the reason
	pipe.on(
		'data',
		fromLines((message) => {
			if (alive && !receive(message)) end(crashed('sent an invalid message'))
		}),
	)

	function receive(message: unknown): boolean {
		if (typeof message !== 'object' || message === null) return false
		const { kind, id, ...rest } = message as Record<string, unknown>
		if (kind === 'ready') {
			ready.resolve()
			return ++readies === 1
		}
		// Messages about an order that has ended meanwhile.
		if (!job || id !== job.id) return Number.isInteger(id) && ++lateMessages <= MAX_LATE
		if (kind === 'done') {
			if (rest.ok === true && typeof rest.value === 'string') settle({ ok: true, value: rest.value })
			else if (rest.ok === false && codes.has(rest.code) && typeof rest.message === 'string') {
				settle({ ok: false, code: rest.code as HostFailure, message: rest.message })
			} else return false
			return true
		}
		if (kind === 'waits' || kind === 'computes') {
			if (job.isWaiting === (kind === 'waits') || ++job.changes > MAX_CHANGES) return false
			job.isWaiting = !job.isWaiting
			job.waits?.(job.isWaiting)
			return true
		}
		if (kind !== 'call' || !kinds.has(rest.what) || !Number.isInteger(rest.call) || typeof rest.body !== 'string')
			return false
		return job.asked(message as CallMessage)
	}

	return {
		pid: child.pid ?? 0,
		ready: ready.promise,
		gone: gone.promise,
		get alive() {
			return alive
		},
		work(order, asked, waits) {
			if (!alive) return Promise.resolve(crashed('is gone'))
			const { promise, resolve } = Promise.withResolvers<ProgramOutcome>()
			job = { id: order.id, asked, waits, isWaiting: false, changes: 0, settle: resolve }
			lateMessages = 0
			pipe.write(toLine(order))
			return promise
		},
		send(message) {
			if (!alive) return Promise.resolve()
			return new Promise((resolve) => pipe.write(toLine(message), () => resolve()))
		},
		end,
	}
}
