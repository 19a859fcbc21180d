/** Runs on the gateway, as a client sees them. */
import { bodyOf } from './connection.ts'
import type { Connection } from './connection.ts'
import { listen } from './subject.ts'
import type { Event, Subject } from './subject.ts'

/** Milliseconds from sending the prompt. */
export interface RunTime {
	started: number
	ended: number
}

export interface Runner extends Disposable {
	/** Sends a prompt, and settles when the stream has reported the run's end. */
	run(connection: Connection, agent: string): Promise<RunTime>
}

const END_WITHIN_MS = 60_000

/** When the client received a run's first and last event (`performance.now`). */
interface RunEvents {
	started: number
	ended: PromiseWithResolvers<number>
}

/** Uses one stream for all runs. `withStart`: also receives `run.started`, which costs the client one more event per run. */
export async function openRunner({ url }: Subject, withStart = false): Promise<Runner> {
	const runs = new Map<string, RunEvents>()
	// Either the response or the run's first event may arrive first.
	const runOf = (run_id: string): RunEvents => {
		const known = runs.get(run_id) ?? { started: 0, ended: Promise.withResolvers() }
		runs.set(run_id, known)
		return known
	}
	const hear = ({ run_id, event_type, payload }: Event): void => {
		const run = runOf(run_id)
		if (event_type === 'run.started') run.started = performance.now()
		else if (event_type === 'run.completed') run.ended.resolve(performance.now())
		else run.ended.reject(new Error(`a run failed: ${JSON.stringify(payload)}`))
	}
	const stream = await listen(url, [...(withStart ? ['run.started'] : []), 'run.completed', 'run.failed'], hear)
	return {
		async run(connection, agent) {
			const sent = performance.now()
			const { run_id } = bodyOf<{ run_id: string }>(
				await connection.post(`/v1/agents/${agent}/runs`, { prompt: 'hello' }),
			)
			const run = runOf(run_id)
			const timer = setTimeout(
				() => run.ended.reject(new Error(`the end of run ${run_id} was not heard in ${END_WITHIN_MS / 1000} s`)),
				END_WITHIN_MS,
			)
			const ended = await run.ended.promise
			clearTimeout(timer)
			runs.delete(run_id)
			return { started: run.started - sent, ended: ended - sent }
		},
		[Symbol.dispose]: () => stream[Symbol.dispose](),
	}
}

/** Every client executes runs sequentially, one for each agent in all. Returns the total milliseconds. */
export async function runAll(
	runner: Runner,
	clients: readonly Connection[],
	agents: readonly string[],
): Promise<number> {
	const left = agents.values()
	const client = async (connection: Connection): Promise<void> => {
		for (const agent of left) await runner.run(connection, agent)
	}
	const began = performance.now()
	await Promise.all(clients.map(client))
	return performance.now() - began
}
