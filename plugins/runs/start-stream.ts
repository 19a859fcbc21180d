/** Starts a run and answers with its events, to its end: `POST …/runs` with `Accept: text/event-stream`. */
import type { Request } from '@hapi/hapi'
import { Fault } from '../../core/errors.ts'
import { holds } from '../shared/scopes.ts'
import type { AgentRef, Context } from '../../core/plugin.ts'
import type { Runs, StartRequest } from './contract.ts'

const SCOPE = 'events:read'

/** Example of the beginning of the stream. */
export const eventFrame = `: connected\nretry: 3000\ndata: ${JSON.stringify({
	event_id: '0197a4c2-64e3-7154-8f99-d40516273849',
	timestamp: '2026-11-02T09:30:00.000Z',
	agent_id: 'ada',
	run_id: '0197a4c2-5d1e-7c3a-9b6f-2f1d8e4a7c05',
	sequence: 1,
	event_type: 'run.started',
	payload: { trigger: 'api' },
})}\nid: 1042\n\n`

/** A client that also accepts JSON gets JSON. */
export function wantsStream({ headers }: Pick<Request, 'headers'>): boolean {
	const accept = String(headers['accept'] ?? '').toLowerCase()
	return accept.includes('text/event-stream') && !accept.includes('application/json')
}

/**
 * A client that reconnects with the same request and key sends `Last-Event-ID`, and gets the events of that run after it. Before
 * a run is started, throws `forbidden` for a caller without the scope `events:read`, and `invalid_request` for `Last-Event-ID`
 * without a key. Throws the errors of `Runs.start`.
 */
export async function startAndStream(
	ctx: Pick<Context, 'use' | 'find'>,
	runs: Runs,
	agent: AgentRef,
	wanted: StartRequest,
	{ auth: { credentials }, raw: { res: response }, headers }: Pick<Request, 'auth' | 'raw' | 'headers'>,
): Promise<void> {
	const after = headers['last-event-id'] as string | undefined
	if (after !== undefined && wanted.idempotency_key === undefined) {
		const message =
			'Last-Event-ID continues a stream, so it needs the Idempotency-Key with which the run was started; without a key this request would start a second run'
		throw new Fault('invalid_request', message)
	}
	const events = ctx.find('events')
	if (!events) throw new Fault('unavailable', 'the plugin events is switched off; send Accept: application/json')
	if (!holds(credentials.scope, SCOPE)) {
		const has = credentials.scope.join(', ')
		throw new Fault('forbidden', `the stream of a run needs the scope ${SCOPE}, too; the token has ${has}`)
	}
	let stream: ReturnType<typeof events.ofRun> | undefined
	let lastId: string | undefined
	const also: StartRequest['also'] = async (run_id) => {
		stream ??= events.ofRun(run_id, credentials)
		lastId = run_id
		return []
	}
	try {
		const { run_id } = await runs.start(agent, { ...wanted, also })
		response.setHeader('location', `/v1/events/stream?run_id=${run_id}`)
		response.setHeader('x-svc-run-id', run_id)
		if (stream && lastId === run_id) return await stream.open(response)
		stream?.drop()
		// The idempotency key belongs to an earlier run, whose events are read from the log.
		await events.stream({ response, credentials, filter: { run_id }, after: after ?? '0', endsWithRun: true })
	} catch (error) {
		stream?.drop()
		throw error
	}
}
