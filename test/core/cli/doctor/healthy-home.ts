/** A home without faults, and the servers that it uses. */
import { createServer } from 'node:http'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import { examine } from '../../../../core/cli/doctor/doctor.ts'
import type { ExamineOptions, Report, Result } from '../../../../core/cli/doctor/doctor.ts'
import type { DoctorLimits } from '../../../../core/cli/doctor/contract.ts'
import { openLmdb } from '../../../../core/store/lmdb/open.ts'
import type { Store } from '../../../../core/store/ports.ts'
import { testFolder } from '../../../support/folder.ts'
import { startGateway } from '../../../support/gateway.ts'
import type { TestGateway } from '../../../support/gateway.ts'
import { listenOnLoopback } from '../../../support/loopback.ts'
import { servers, stdio } from '../../../support/mcp.ts'
import { startTelegram } from '../../../support/telegram.ts'
import type { TestTelegram } from '../../../support/telegram.ts'

export const modelKey = 'sk-test-4f9a1c77d2e84b6f'

/** A model server that behaves as its fields specify. */
interface FaultyModels {
	url: string
	models: string[]
	dimensions: number
	key: string
	/** Lists its models without a key, too. */
	isOpen: boolean
	/** The offset of its clock. */
	offMs: number
	/** Never answers. */
	hangs: boolean
	status: number | undefined
}

async function startModels(t: Test): Promise<FaultyModels> {
	const model: FaultyModels = {
		url: '',
		models: ['small-chat', 'small-embed'],
		dimensions: 8,
		key: modelKey,
		isOpen: false,
		offMs: 0,
		hangs: false,
		status: undefined,
	}
	const server = createServer((request: IncomingMessage, response: ServerResponse) => {
		void (async () => {
			let text = ''
			for await (const part of request.setEncoding('utf8')) text += String(part)
			if (model.hangs) return
			response.setHeader('date', new Date(Date.now() + model.offMs).toUTCString())
			const answer = (status: number, body: unknown): void =>
				void response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
			if (model.status !== undefined) return answer(model.status, {})
			const isPublic = model.isOpen && request.url === '/v1/models'
			if (!isPublic && request.headers.authorization !== `Bearer ${model.key}`)
				return answer(401, { error: { message: `Incorrect API key provided: ${request.headers.authorization}` } })
			if (request.url === '/v1/models') return answer(200, { data: model.models.map((id) => ({ id })) })
			const { input } = JSON.parse(text) as { input: string[] }
			const embedding = Array.from({ length: model.dimensions }, (_, at) => (at === 0 ? 1 : 0.1))
			answer(200, { data: input.map((_, index) => ({ index, embedding })) })
		})()
	})
	const { url, stop } = await listenOnLoopback(server)
	t.teardown(stop)
	model.url = `${url}/v1`
	return model
}

export interface Home {
	home: string
	models: FaultyModels
	telegram: TestTelegram
	config: string
	/** The id of the channel. */
	channel: string
	/** The id of the channel's secret. */
	secret: string
	/** A token with all scopes. */
	token: string
	start(): Promise<TestGateway>
}

/** Sets up a home. Its gateway is stopped. */
export async function startHome(t: Test): Promise<Home> {
	const models = await startModels(t)
	const telegram = await startTelegram()
	t.teardown(() => telegram.stop())
	const home = testFolder(t)
	const config = `
server: {port: 0}
legacy: {port: 0}
providers:
  house:
    kind: openai
    base_url: ${models.url}
    api_key: {secret: HOUSE_KEY}
    model: small-chat
    embedding_model: small-embed
default_provider: house
`
	const start = (): Promise<TestGateway> => startGateway({ home })
	mkdirSync(join(home, 'config'), { mode: 0o700 })
	setConfig(home, config)
	const gateway = await start()
	const post = async (path: string, body: unknown) => {
		const { status, body: answer } = await gateway.request('POST', path, { body })
		if (status >= 300) throw new Error(`${path} answered ${status} ${JSON.stringify(answer)}`)
		return answer
	}
	try {
		await post('/v1/vault/secrets', { name: 'HOUSE_KEY', value: modelKey })
		const secret = await post('/v1/vault/secrets', { name: 'BOT', value: telegram.token })
		await post('/v1/agents', { name: 'ada' })
		await post('/v1/agents/ada/mcp', stdio('house', servers.fixture))
		await post('/v1/agents/ada/memory', { content: 'The house has a blue door.' })
		const { id } = await post('/v1/channels', {
			type: 'chat_a',
			bot_token_ref: 'BOT',
			config: { api_root: telegram.url },
		})
		const { token } = await post('/v1/auth/tokens', { scopes: ['*'] })
		return { home, models, telegram, config, channel: id, secret: secret.id, token, start }
	} finally {
		await gateway.stop()
	}
}

export function setConfig(home: string, text: string): void {
	writeFileSync(join(home, 'config/gateway.yaml'), text, { mode: 0o600 })
}

/** Changes the store of a home whose gateway has stopped. */
export async function withStore<T>(home: string, change: (store: Store) => Promise<T>): Promise<T> {
	await using engine = await openLmdb({ path: join(home, 'data') })
	return await change(engine.store)
}

/** Long enough for a busy machine. */
export const patience: DoctorLimits = {
	check: 120_000,
	request: 60_000,
	plugin: 60_000,
	plugins: 100_000,
	thirdParty: 60_000,
	store: 60_000,
}

/** The report of the named checks; of all by default. */
export async function examined(
	home: string,
	only: string[] = [],
	options: Partial<ExamineOptions> = {},
): Promise<Report> {
	const env = { PATH: process.env.PATH, HOME: home, SVC_PORT: '0', SVC_LEGACY_PORT: '0' }
	return examine({
		home,
		env,
		...(only.length > 0 && { only }),
		...options,
		limits: { ...patience, ...options.limits },
	})
}

/** The findings other than `ok`. */
export function problems({ checks }: Report): Result[] {
	return checks.filter(({ level }) => level !== 'ok')
}
