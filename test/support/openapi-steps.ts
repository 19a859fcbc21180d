/** Prepares each operation of the API for a call with its own example, and adapts the example to existing things. */
import { createHmac } from 'node:crypto'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import type { Answer, TestGateway } from './gateway.ts'
import { servers } from './mcp.ts'
import { browse, startProtectedServer } from './oauth.ts'
import { eventually } from './wait.ts'

/** Replaces parts of an example that name things which do not exist. */
export interface Step {
	params?: Record<string, string>
	query?: Record<string, string>
	headers?: Record<string, string>
	/** Replaces the example of the body; text if the body is not JSON. */
	body?: unknown
	/** A stream that need not send anything. */
	quiet?: boolean
	/** Called once a stream is open. */
	meanwhile?: () => Promise<unknown>
}

/** The responses of earlier operations, by operationId. */
export type Made = Map<string, Answer>

interface World {
	gateway: TestGateway
	made: Made
	/** The example of the operation's body. */
	body: unknown
}

/** Called first, in this order. Then follow all others in the order of the document, those that delete, and `last`. */
const first = [
	'createAgent',
	'createSecret',
	'createGrant',
	'createToken',
	'createChannel',
	'pairChat',
	'createHeartbeat',
	'installSkill',
	'addMcpServer',
	'storeMemory',
	'compactMemory',
	'registerWebhook',
	'deliver',
	'startRun',
	'uploadBlob',
]
const deletes = /^(delete|remove|revoke|forget|clear|end)/
const last = ['resetVault', 'deleteAgent']

export function inOrder<T extends { operation: { operationId: string } }>(operations: T[]): T[] {
	const rank = ({ operation: { operationId: id } }: T): number => {
		if (first.includes(id)) return first.indexOf(id)
		return first.length + (last.includes(id) ? 2 + last.indexOf(id) : deletes.test(id) ? 1 : 0)
	}
	return operations.toSorted((a, b) => rank(a) - rank(b))
}

/** By operationId. All other operations are called exactly as documented. */
export const steps: Record<string, (world: World) => Step | Promise<Step>> = {
	changeSettings: () => ({ body: { set: { 'server.shutdown_grace_s': 20 } } }),
	setConfiguration: async ({ gateway }) => {
		const { text, digest } = (await gateway.request('GET', '/v1/config')).body
		return { body: { text: `${text}# the end\n`, digest } }
	},
	async getConsoleFile({ gateway }) {
		const { body } = await gateway.request<string>('GET', '/', { headers: { accept: 'text/html' } })
		return { params: { file: /console\/(app-\w+\.js)/.exec(body)?.[1] ?? '' } }
	},
	reloadPlugin: () => ({ params: { name: 'metrics' } }),
	async resetVault({ gateway }) {
		rmSync(join(gateway.home, 'keys/vault.key'))
		await gateway.request('POST', '/v1/plugins/vault/reload')
		return {}
	},
	uploadBlob: () => ({ body: 'a,b\n1,2\n', query: { name: 'table.csv' } }),
	readBlob: ({ made }) => ({ params: { digest: made.get('uploadBlob').blob } }),
	getRun: ({ made }) => ({ params: { run_id: made.get('startRun').run_id } }),
	listSteps: ({ made }) => ({ params: { run_id: made.get('startRun').run_id } }),
	getContext: ofStartedRun,
	readConversation: ofStartedRun,
	async compactConversation({ gateway }) {
		await gateway.request('POST', '/v1/agents', { body: { name: 'dora' } })
		const start = () => gateway.request('POST', '/v1/agents/dora/runs', { body: { prompt: 'hello' } })
		const run_ids = (await Promise.all([start(), start(), start()])).map(({ body }) => body.run_id as string)
		const ended = async () => (await gateway.request('GET', '/v1/agents/dora/runs?status=completed')).body
		await eventually(async () => (await ended()).length === run_ids.length)
		return { params: { name: 'dora', id: (await ended())[0].conversation } }
	},
	listStepRequests: ({ made }) => ({ params: { run_id: made.get('startRun').run_id, step: '1' } }),
	deleteConversation: ofStartedRun,
	cancelRun: async ({ gateway }) => ({ params: { run_id: (await startAsking(gateway, 'bob')).run_id } }),
	async retryRun({ gateway }) {
		const { run_id } = await startAsking(gateway, 'fay')
		await gateway.request('POST', `/v1/runs/${run_id}/cancel`)
		return { params: { run_id } }
	},
	answerQuestion: async ({ gateway }) => ({
		params: { name: 'carol', question_id: (await startAsking(gateway, 'carol')).question_id },
	}),
	async revokeApproval({ gateway }) {
		await gateway.request('POST', '/v1/agents', {
			body: { name: 'erin', config: { tools: { ask: ['memory.store'] } } },
		})
		const { question_id } = await startAsking(gateway, 'erin', '/tool memory.store {"content": "The door is green."}')
		const body = { answer: 'approve_always' }
		await gateway.request('POST', `/v1/agents/erin/ask-responses/${question_id}`, { body })
		const [approval] = (await gateway.request('GET', '/v1/agents/erin/approvals')).body
		return { params: { name: 'erin', approval_id: approval.approval_id } }
	},

	streamEvents: ({ gateway }) => ({
		meanwhile: () => gateway.request('POST', '/v1/agents/ada/runs', { body: { prompt: 'hello' } }),
	}),

	revokeToken: ({ made }) => ({ params: { id: made.get('createToken').id } }),
	revokeGrant: ({ made }) => ({ params: { grant_id: made.get('createGrant').grant_id } }),

	async createChannel({ gateway, body }) {
		const { bot_token_ref, config } = body as { bot_token_ref: string; config: object }
		await gateway.request('POST', '/v1/vault/secrets', { body: { name: bot_token_ref, value: '100200:a-bot-token' } })
		// Nothing listens there: a test must not contact the real platform.
		return { body: { ...(body as object), config: { ...config, api_root: 'http://127.0.0.1:9' } } }
	},
	pairChat: ({ made, body }) => ({ body: { ...(body as object), channel_id: made.get('createChannel').id } }),
	getChannel: ({ made }) => ({ params: { id: made.get('createChannel').id } }),
	updateChannel: ({ made }) => ({ params: { id: made.get('createChannel').id } }),
	listBindings: ({ made }) => ({ params: { id: made.get('createChannel').id } }),
	updateBinding: ({ made }) => ({
		params: { id: made.get('createChannel').id, binding_id: made.get('pairChat').binding_id },
	}),
	deleteBinding: ({ made }) => ({
		params: { id: made.get('createChannel').id, binding_id: made.get('pairChat').binding_id },
	}),
	sendMessage: ({ made }) => ({ params: { id: `channel:${made.get('pairChat').binding_id}` } }),
	async deleteChannel({ gateway }) {
		const body = { type: 'chat_a', bot_token_ref: 'BOT_TOKEN', config: { api_root: 'http://127.0.0.1:9' } }
		return { params: { id: (await gateway.request('POST', '/v1/channels', { body })).body.id } }
	},

	changeHeartbeat: ({ made }) => ({ params: { id: made.get('createHeartbeat').id } }),
	deleteHeartbeat: ({ made }) => ({ params: { id: made.get('createHeartbeat').id } }),

	readSkillFile: ({ made }) => ({ params: { skill_id: made.get('installSkill').id } }),
	reviewSkill: ({ made }) => ({ params: { skill_id: made.get('installSkill').id } }),
	approveSkill: ({ made }) => ({ params: { skill_id: made.get('installSkill').id } }),
	removeSkill: ({ made }) => ({ params: { skill_id: made.get('installSkill').id } }),

	// The program in the example would have to be downloaded first.
	addMcpServer: ({ body }) => ({
		body: { ...(body as object), command: process.execPath, args: [servers.fixture] },
	}),
	getMcpServer: ({ made }) => ({ params: { mcp_id: made.get('addMcpServer').id } }),
	updateMcpServer: ({ made }) => ({ params: { mcp_id: made.get('addMcpServer').id } }),
	restartMcpServer: ({ made }) => ({ params: { mcp_id: made.get('addMcpServer').id } }),
	acceptMcpTools: ({ made }) => ({ params: { mcp_id: made.get('addMcpServer').id } }),
	loginToMcpServer: async ({ gateway }) => ({ params: { mcp_id: await guardedServer(gateway) } }),
	async completeMcpLogin({ gateway }) {
		const mcp_id = await guardedServer(gateway)
		return { params: { mcp_id }, body: { redirect_url: await signedIn(gateway, mcp_id) } }
	},
	async endLogin({ gateway }) {
		const { status, body, headers } = await gateway.request('POST', '/v1/auth/login')
		if (status !== 200) return {} // without an identity provider
		const back = new URL(await browse(body.url as string, 'https://gateway.example.com/'))
		const [cookie = ''] = headers.getSetCookie()[0]?.split(';') ?? []
		return { query: Object.fromEntries(back.searchParams), headers: { cookie } }
	},
	logoutOfMcpServer: async ({ gateway }) => ({ params: { mcp_id: await guardedServer(gateway) } }),
	async endMcpLogin({ gateway }) {
		const back = new URL(await signedIn(gateway, await guardedServer(gateway)))
		return { query: Object.fromEntries(back.searchParams) }
	},
	removeMcpServer: ({ made }) => ({ params: { mcp_id: made.get('addMcpServer').id } }),

	async undoCompaction({ gateway, made }) {
		const { compaction_id } = made.get('compactMemory')
		const path = '/v1/agents/ada/memory/compactions'
		await eventually(async () => (await gateway.request('GET', path)).body[0]?.status === 'completed')
		return { params: { compaction_id } }
	},
	forgetMemory: ({ made }) => ({ params: { memory_id: made.get('storeMemory').id } }),

	getResponse: ({ made }) => ({ params: { id: made.get('createResponse').id } }),
	cancelResponse: ({ made }) => ({ params: { id: made.get('createResponse').id } }),
	listResponseInput: ({ made }) => ({ params: { id: made.get('createResponse').id } }),
	deleteResponse: ({ made }) => ({ params: { id: made.get('createResponse').id } }),
	// On a cluster there are no backups.
	removeBackup: ({ made }) => ({ params: { id: made.get('createBackup')?.id ?? 'none' } }),

	sendMcpMessage: async ({ gateway }) => ({ headers: await mcpSession(gateway) }),
	openMcpStream: async ({ gateway }) => ({ headers: await mcpSession(gateway), quiet: true }),
	endMcpSession: async ({ gateway }) => ({ headers: await mcpSession(gateway) }),

	deliver: ({ made, body }) => ({
		params: { token: made.get('registerWebhook').token },
		// The example registers a webhook for GitHub.
		headers: { 'x-hub-signature-256': `sha256=${hmac(made.get('registerWebhook').secret, JSON.stringify(body))}` },
	}),
}

const guarded = new WeakMap<TestGateway, Promise<string>>()

/** The id of an MCP server that requires a login. */
function guardedServer(gateway: TestGateway): Promise<string> {
	const found =
		guarded.get(gateway) ??
		startProtectedServer({ teardown() {} }).then(async ({ url }) => {
			const body = { name: 'guarded', transport: 'http', url }
			return (await gateway.request('POST', '/v1/agents/ada/mcp', { body })).body.id as string
		})
	guarded.set(gateway, found)
	return found
}

/** Performs a login, and returns the address to which the browser is finally redirected. */
async function signedIn(gateway: TestGateway, mcp_id: string): Promise<string> {
	const { url } = (await gateway.request('POST', `/v1/agents/ada/mcp/${mcp_id}/login`)).body
	return browse(url, new URL(url).searchParams.get('redirect_uri') ?? '')
}

/** Opens a session, and returns the headers for its requests. */
async function mcpSession(gateway: TestGateway): Promise<Record<string, string>> {
	const accept = 'application/json, text/event-stream'
	const clientInfo = { name: 'test', version: '1' }
	const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo }
	const body = { jsonrpc: '2.0', id: 0, method: 'initialize', params }
	const opened = await gateway.request('POST', '/mcp', { body, headers: { accept } })
	const headers = { accept, 'mcp-session-id': opened.headers.get('mcp-session-id') ?? '' }
	const initialized = { jsonrpc: '2.0', method: 'notifications/initialized' }
	await gateway.request('POST', '/mcp', { body: initialized, headers })
	return headers
}

/** Starts a run of a new agent that waits for an answer. */
async function startAsking(
	gateway: TestGateway,
	name: string,
	prompt = '/tool ask {"question": "May I?"}',
): Promise<{ run_id: string; question_id: string }> {
	await gateway.request('POST', '/v1/agents', { body: { name } })
	const { run_id } = (await gateway.request('POST', `/v1/agents/${name}/runs`, { body: { prompt } })).body
	let question_id = ''
	await eventually(async () => {
		const { status, question } = (await gateway.request('GET', `/v1/runs/${run_id}`)).body
		question_id = question?.question_id ?? ''
		return status === 'paused'
	})
	return { run_id, question_id }
}

function hmac(secret: string, text: string): string {
	return createHmac('sha256', secret).update(text).digest('hex')
}

/** The conversation of the run that `startRun` made. */
async function ofStartedRun({ gateway, made }: World): Promise<Step> {
	const { conversation } = (await gateway.request('GET', `/v1/runs/${made.get('startRun').run_id}`)).body
	return { params: { id: conversation } }
}
