/** Runs programs in the pool of skill hosts. Hosts are started on demand, and replaced after a failure or a number of orders. */
import { addAbortListener } from 'node:events'
import { Fault } from '../../core/errors.ts'
import { programLimits } from '../../sandbox/host-protocol.ts'
import type { CheckOrder, Program, ProgramOrder, ProgramOutcome } from '../../sandbox/host-protocol.ts'
import type { Logger } from '../../core/log/log.ts'
import type { SkillSettings } from './contract.ts'
import { answerCalls, readJson } from './host-calls.ts'
import type { CallHandlers } from './host-calls.ts'
import { hostCommand } from './host-command.ts'
import type { Host } from './host.ts'
import { openHostQueue } from './host-queue.ts'
import { watch } from './watchdog.ts'
import type { WallTime } from './watchdog.ts'

export interface ProgramCall extends CallHandlers {
	/** The uid of the agent whose share of the processes it uses. */
	owner: string
	program: Program
	/** Checked arguments. */
	args: Record<string, unknown>
	signal: AbortSignal
}

export interface ProgramHosts extends AsyncDisposable {
	/**
	 * Runs a program in a separate process. Returns the program's result (plain data). Throws `skill_failed` if it
	 * threw, `sandbox_timeout`, `sandbox_memory`, `sandbox_crash`, `sandbox_busy` if too many calls wait, or the reason of
	 * the signal. When it settles, nothing of the program is running.
	 */
	run(call: ProgramCall): Promise<unknown>
	/**
	 * Throws `skill_invalid`, with the location, for a program that does not compile, imports something, has no default export,
	 * or crashes its compiler. Does not execute the program. `owner` as in ProgramCall.
	 */
	check(owner: string, program: Program): Promise<void>
	/** Starts a process if there is none, so that the first call does not wait for it. */
	warm(): void
}

export interface HostOptions {
	settings: Omit<SkillSettings, 'allow_private_urls' | 'max_per_agent' | 'max_mib_per_agent'>
	log: Logger
	/** Orders after which a process is replaced, to limit its memory leaks. */
	orders_per_process?: number
}

/** Compiling is fast. A program that takes long to compile was written to do so. */
const CHECK_WITHIN: WallTime = { s: 10 }

/** Starts no process yet. */
export function openHosts({ settings, log, orders_per_process = 500 }: HostOptions): ProgramHosts {
	const limits = { memory_mib: settings.memory_mib, process_mib: settings.process_mib, cpu_ms: settings.cpu_s * 1000 }
	const queue = openHostQueue({ makeCommand: () => hostCommand(limits), ...settings, orders_per_process, log })
	const runWithin: WallTime = { s: settings.wall_time_s, setting: 'skills.wall_time_s' }
	let orders = 0

	/** Lets a host execute an order, within the limits. After a failure of the sandbox, the process has ended when this settles. */
	async function work(
		host: Host,
		order: ProgramOrder | CheckOrder,
		wall: WallTime,
		asked: Parameters<Host['work']>[1],
		waits?: Parameters<Host['work']>[2],
	): Promise<ProgramOutcome> {
		using _watch = watch(host.pid, { ...limits, wall }, host.end)
		const outcome = await host.work(order, asked, waits)
		if (outcome.ok || !outcome.code.startsWith('sandbox_')) return outcome
		host.end()
		await host.gone
		return outcome
	}

	return {
		async run({ owner, program, args, signal, called, logged }) {
			const host = await queue.take(owner, signal)
			const id = ++orders
			const calls = answerCalls(id, { called, logged }, host.send, log)
			using _ = addAbortListener(signal, () => host.end())
			try {
				signal.throwIfAborted()
				const order: ProgramOrder = { kind: 'run', id, ...program, args: JSON.stringify(args) }
				const outcome = await work(host, order, runWithin, calls.handle, (only) => queue.setWaits(host, only))
				signal.throwIfAborted()
				return valueOf(outcome)
			} finally {
				await calls.end()
				queue.release(host)
			}
		},
		async check(owner, program) {
			const host = await queue.take(owner)
			try {
				const outcome = await work(host, { kind: 'check', id: ++orders, ...program }, CHECK_WITHIN, () => false)
				// A program that crashes or stalls its compiler does not compile.
				if (!outcome.ok) throw new Fault('skill_invalid', outcome.message)
			} finally {
				queue.release(host)
			}
		},
		warm: () => queue.warm(),
		[Symbol.asyncDispose]: () => queue.close(),
	}
}

function valueOf(outcome: ProgramOutcome): unknown {
	if (!outcome.ok) throw new Fault(outcome.code, outcome.message.slice(0, programLimits.message_length))
	const value = readJson(outcome.value)
	if (value === undefined) {
		throw new Fault('skill_failed', `its result is nested deeper than ${programLimits.depth} levels, or is not JSON`)
	}
	return value
}
