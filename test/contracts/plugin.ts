/** A real gateway for the tests of one plugin, in this process: with a temporary home, free ports and the offline model. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { stringify } from 'yaml'
import type { Plugin } from '../../core/plugin.ts'
import type { EventEnvelope } from '../../core/store/ports.ts'
import { svcFor } from '../support/cli.ts'
import type { Svc } from '../support/cli.ts'
import { startGateway } from '../support/gateway.ts'
import type { TestGateway } from '../support/gateway.ts'
import { openWatch } from '../support/wait.ts'

export interface PluginUnderTest extends AsyncDisposable {
	/** The main address, such as `http://127.0.0.1:41234`. */
	readonly url: string
	/** The temporary home; it is removed at the end. */
	readonly home: string
	/** Sends an HTTP request as an operator, with `{ body }` as JSON; returns `{ status, headers, body }`. */
	request: TestGateway['request']
	/**
	 * Lets the agent `tester` call a primitive, and returns the result as the model gets it. If the call fails, throws an Error with
	 * the message that the model gets.
	 */
	tool(name: string, args?: Record<string, unknown>): Promise<unknown>
	/** The first event of this type since the start, or the next one; throws after 60 s without one. */
	event(type: string): Promise<EventEnvelope>
	/** Runs `svc` with these arguments on this gateway, without a terminal; returns `{ code, stdout, stderr }`. */
	svc: Svc
}

const PATIENCE_MS = 60_000
const ends = ['run.completed', 'run.failed', 'run.stopped']

/**
 * Starts a gateway with the plugin in this folder switched on. `settings`: as under `plugins:` in gateway.yaml; `config`: other
 * sections of that file. Throws with the reason if the plugin does not start.
 */
export async function startPlugin(
	folder: string,
	settings: Record<string, unknown> = {},
	config: Record<string, unknown> = {},
): Promise<PluginUnderTest> {
	const name = await nameOf(folder)
	const plugins = { ...(config.plugins as object | undefined), [name]: { path: folder, ...settings } }
	const gateway = await startGateway({ config: stringify({ ...config, plugins }), madeUpEvents: true })
	const { events, status } = gateway.running.gateway
	const seen: EventEnvelope[] = []
	const watch = openWatch()
	const unsubscribe = events.subscribe({}, ({ event }) => {
		seen.push(event)
		watch.check()
	})
	const stop = async (): Promise<void> => {
		unsubscribe()
		await gateway.stop()
	}
	const state = status.plugins().find((one) => one.name === name)
	if (state?.state !== 'running') {
		await stop()
		throw new Error(state?.last_error ?? `the plugin ${name} does not run`)
	}

	/** The first event for which `isWanted` returns true. */
	const received = (isWanted: (event: EventEnvelope) => boolean, what: string): Promise<EventEnvelope> =>
		watch.until(
			() => seen.find(isWanted),
			() => `${what} was not emitted within ${PATIENCE_MS / 1000} s`,
			PATIENCE_MS,
		)

	return {
		url: gateway.url,
		home: gateway.home,
		request: gateway.request,
		async tool(tool, args = {}) {
			await gateway.request('POST', '/v1/agents', { body: { name: 'tester' } })
			const prompt = `/tool ${tool} ${JSON.stringify(args)}`
			const { status, body } = await gateway.request('POST', '/v1/agents/tester/runs', { body: { prompt } })
			if (status !== 200) throw new Error(`the run was refused: ${status} ${JSON.stringify(body)}`)
			const ofRun = ({ run_id }: EventEnvelope): boolean => run_id === body.run_id
			await received((event) => ofRun(event) && ends.includes(event.event_type), 'the end of the run')
			const result = seen.find((event) => ofRun(event) && /^primitive\.(result|failed)$/.test(event.event_type))
			if (!result)
				throw new Error(`there is no primitive ${tool}; ${JSON.stringify(seen.filter(ofRun).at(-1)?.payload)}`)
			if (result.event_type === 'primitive.failed') throw new Error(String(result.payload.message))
			return parsed(String(result.payload.result))
		},
		event: (type) => received((event) => event.event_type === type, type),
		svc: svcFor({ home: gateway.home, url: gateway.url }),
		[Symbol.asyncDispose]: stop,
	}
}

async function nameOf(folder: string): Promise<string> {
	const entry = ['index.ts', 'index.js', 'index.mjs'].map((file) => join(folder, file)).find((file) => existsSync(file))
	if (entry === undefined) throw new Error(`${folder} has no index.ts, index.js or index.mjs`)
	return ((await import(pathToFileURL(entry).href)) as { default: Plugin }).default.name
}

/** Parses a JSON result; any other result is returned as text. */
function parsed(text: string): unknown {
	try {
		return JSON.parse(text) as unknown
	} catch {
		return text
	}
}
