/** One agent of a running gateway, with its runs and their events from the event stream. */
import type { Test } from 'tap'
import type { EventEnvelope } from '../../core/store/ports.ts'
import type { Answer, Reply, TestGateway } from './gateway.ts'
import { openStream } from './sse.ts'
import type { TestStream } from './sse.ts'

export interface Followed {
	stream: TestStream
	/** POST to a path below the agent's; without a body, GET. */
	call(path: string, body?: unknown): Promise<Reply<Answer>>
	/** Starts a run and returns its id. Throws if it is refused. */
	start(prompt: string): Promise<string>
	/** Starts a run, waits until it has completed, and returns its id. */
	complete(prompt: string): Promise<string>
	/** Waits for an event of one run. */
	waitFor(run_id: string, event_type: string, n?: number): Promise<EventEnvelope>
	/** The event with which the run ended. */
	ended(run_id: string): Promise<EventEnvelope>
	/** Events of the run so far, without `model.stream`. */
	eventsOf(run_id: string): EventEnvelope[]
	typesOf(run_id: string): string[]
	read(run_id: string): Promise<Answer>
}

const ends = ['run.completed', 'run.failed', 'run.stopped']

/** Creates the agent unless it exists, and subscribes to its events. */
export async function follow(
	t: Test,
	gateway: Pick<TestGateway, 'url' | 'request'>,
	name: string,
	fields: Record<string, unknown> = {},
): Promise<Followed> {
	const made = await gateway.request('POST', '/v1/agents', { body: { name, ...fields } })
	if (made.status !== 201 && made.status !== 409) throw new Error(`agent ${name}: ${JSON.stringify(made.body)}`)
	const stream = await openStream(gateway.url, { query: { agent_id: name } })
	t.teardown(() => stream.close())

	const call = (path: string, body?: unknown): Promise<Reply<Answer>> =>
		gateway.request(
			body === undefined ? 'GET' : 'POST',
			`/v1/agents/${name}/${path}`,
			body === undefined ? {} : { body },
		)
	const start = async (prompt: string): Promise<string> => {
		const reply = await call('runs', { prompt })
		if (reply.status !== 200) throw new Error(`a run was refused: ${reply.status} ${JSON.stringify(reply.body)}`)
		return reply.body.run_id
	}
	const ended = (run_id: string): Promise<EventEnvelope> =>
		stream.waitFor((event) => event.run_id === run_id && ends.includes(event.event_type))
	const eventsOf = (run_id: string): EventEnvelope[] =>
		stream.events.filter((event) => event.run_id === run_id && event.event_type !== 'model.stream')

	return {
		stream,
		call,
		start,
		async complete(prompt) {
			const run_id = await start(prompt)
			const end = await ended(run_id)
			if (end.event_type !== 'run.completed') throw new Error(`${end.event_type}: ${JSON.stringify(end.payload)}`)
			return run_id
		},
		waitFor: (run_id, event_type, n) =>
			stream.waitFor((event) => event.run_id === run_id && event.event_type === event_type, n),
		ended,
		eventsOf,
		typesOf: (run_id) => eventsOf(run_id).map((event) => event.event_type),
		read: async (run_id) => (await gateway.request('GET', `/v1/runs/${run_id}`)).body,
	}
}
