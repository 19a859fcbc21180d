/** OpenAI's client and a gateway whose models are real servers. */
import { OpenAI } from 'openai'
import type { APIError } from 'openai'
import type { Test } from 'tap'
import { startGateway } from '../../support/gateway.ts'
import type { TestGateway } from '../../support/gateway.ts'
import { startManualModel } from '../../support/manual-model.ts'
import type { ManualModel } from '../../support/manual-model.ts'
import { startModelServer } from '../../support/model-server.ts'
import type { ModelServer } from '../../support/model-server.ts'
import { providersAt } from '../../support/providers.ts'
import { eventually } from '../../support/wait.ts'

export interface Surface {
	gateway: TestGateway
	model: ModelServer
	held: ManualModel
	/** Without a token, for a local caller. Never retries. */
	client(token?: string): OpenAI
	/** Creates an agent; `provider` is `model` (the default), `held` or `offline`. */
	agent(name: string, fields?: { persona?: string; config?: Record<string, unknown> }): Promise<void>
	/** The gateway's record of a run. */
	run(run_id: string): Promise<Run>
	/** Runs of an agent, newest first. */
	runs(agent: string): Promise<Run[]>
	/** Settles once the run has that status. */
	reaches(run_id: string, status: string): Promise<void>
}

export interface Run {
	run_id: string
	status: string
	trigger: string
	conversation: string
	prompt: string
	answer: string | null
}

/** The text of gateway.yaml. `settings`: those of the plugin. */
export function configOf(model: ModelServer, held: ManualModel, settings = 'true'): string {
	return `server: {shutdown_grace_s: 0}
plugins: {openai-api: ${settings}}
default_provider: model
${providersAt({ model: model.url, held: held.url })}  offline: {kind: offline}
`
}

export async function startSurface(t: Test, settings?: string): Promise<Surface> {
	const model = await startModelServer()
	t.teardown(() => model.stop())
	const held = await startManualModel()
	t.teardown(() => held.stop())
	const gateway = await startGateway({ config: configOf(model, held, settings) })
	t.teardown(() => gateway.stop())
	const run = async (run_id: string): Promise<Run> => (await gateway.request('GET', `/v1/runs/${run_id}`)).body
	return {
		gateway,
		model,
		held,
		run,
		client: (token) => clientOf(gateway.url, token),
		async agent(name, fields = {}) {
			const made = await gateway.request('POST', '/v1/agents', { body: { name, ...fields } })
			if (made.status !== 201) throw new Error(JSON.stringify(made.body))
		},
		runs: async (agent) => (await gateway.request('GET', `/v1/agents/${agent}/runs`)).body,
		async reaches(run_id, status) {
			await eventually(
				() => run(run_id),
				(found) => found.status === status,
			)
		},
	}
}

/** Sets every option that the client would otherwise read from the environment. */
export function clientOf(url: string, token?: string): OpenAI {
	return new OpenAI({
		baseURL: `${url}/v1`,
		apiKey: token ?? 'none',
		organization: null,
		project: null,
		maxRetries: 0,
		...(token === undefined && { defaultHeaders: { authorization: null } }),
	})
}

/** The messages of a request with this prompt alone. */
export const userMessages = (content: string) => [{ role: 'user' as const, content }]

/** The error of a refused call, as the client parses it. Throws if the call succeeds. */
export async function refusal(call: PromiseLike<unknown>): Promise<Refusal> {
	try {
		await call
	} catch (error) {
		const { status, type, param, code, message, headers } = error as APIError
		return { status, type, param, code, message, headers }
	}
	throw new Error('the call was not refused')
}

type Refusal = Pick<APIError, 'status' | 'type' | 'param' | 'code' | 'message' | 'headers'>
