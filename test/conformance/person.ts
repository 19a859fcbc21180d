/** A login for the suite's client: the services that the plugin gets from a gateway, and a person who agrees to everything. */
import { openMemory } from '../support/memory-engine.ts'
import { Login } from '../../plugins/mcp/login/login.ts'
import type { LoginServices } from '../../plugins/mcp/login/login.ts'
import type { McpAuth } from '../../plugins/mcp/contract.ts'
import type { McpRecord } from '../../plugins/mcp/records.ts'
import { serverKey } from '../../plugins/mcp/records.ts'

interface SuiteContext {
	client_id?: string
	client_secret?: string
	private_key_pem?: string
}

const agent = { name: 'ada', uid: 'u1' }
const MAX_LOGINS = 8

/** What an operator would configure for the scenario. */
function authFor(scenario: string, { client_id, client_secret, private_key_pem }: SuiteContext): McpAuth | undefined {
	if (scenario === 'auth/2025-03-26-oauth-endpoint-fallback') return { type: 'oauth' }
	if (scenario === 'auth/basic-cimd')
		return { type: 'oauth', client_id: 'https://conformance-test.local/client-metadata.json' }
	if (client_id === undefined) return undefined
	return {
		type: 'oauth',
		client_id,
		...(scenario.includes('client-credentials') && { grant: 'client_credentials' as const }),
		...(private_key_pem !== undefined && { private_key: { secret: 'private_key_pem' } }),
		...(client_secret !== undefined && { client_secret: { secret: 'client_secret' } }),
	}
}

export interface Person {
	login: Login
	/** Runs `work`. If it needs a login, signs in and runs it again. */
	signedIn<T>(work: () => Promise<T>): Promise<T>
}

export async function openPerson(url: URL): Promise<Person> {
	const scenario = process.env.MCP_CONFORMANCE_SCENARIO ?? ''
	const context = JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT ?? '{}') as SuiteContext & Record<string, string>
	const auth = authFor(scenario, context)
	const record: McpRecord = {
		id: 'server',
		name: 'suite',
		transport: 'http',
		url: url.href,
		names: {},
		values: null,
		secrets: [],
		secrets_allowed: true,
		trusted: true,
		...(auth && { auth }),
		enabled: true,
		created_at: new Date().toISOString(),
	}
	const { store } = openMemory()
	await store.put(serverKey(agent, record.id), record)
	const vault = {
		seal: async (text: string) => Buffer.from(text),
		unseal: async (sealed: Uint8Array) => Buffer.from(sealed).toString(),
		fill: async (handle: string) => context[handle.replace(/^\{\{secret:(.+)\}\}$/, '$1')],
	}
	const services = {
		store,
		use: () => vault,
		find: () => vault,
		emit: async () => {},
		gateway: { publicUrl: () => 'http://127.0.0.1:3000' },
		config: { allowed_hosts: [] },
		log: console,
		redactor: { of: () => ({ text: (text: string) => text }) },
	} as unknown as LoginServices
	const login = new Login(record, agent, services)

	const signIn = async (): Promise<void> => {
		const started = await login.begin(null)
		const response = await fetch(started.url, { redirect: 'manual' })
		const back = new URL(response.headers.get('location') ?? '')
		await login.finish(back.searchParams, undefined)
	}
	return {
		login,
		async signedIn(work) {
			for (let logins = 0; ; logins++) {
				try {
					return await work()
				} catch (error) {
					if (login.loginReason === null || logins === MAX_LOGINS) throw error
					await signIn()
				}
			}
		},
	}
}
