/** Conversations and responses belong to the token that made them; what 0.1.0 kept for everybody finds its user again. */
import { setTimeout as pause } from 'node:timers/promises'
import t from 'tap'
import type { Test } from 'tap'
import type { Context } from '../../../core/plugin.ts'
import type {} from '../../../plugins/runs/contract.ts'
import type {} from '../../../plugins/agents/contract.ts'
import { startGateway } from '../../support/gateway.ts'
import type { TestGateway } from '../../support/gateway.ts'
import { AUDIENCE, startIssuer } from '../../support/issuer.ts'
import { startModelServer } from '../../support/model-server.ts'
import type { ModelServer } from '../../support/model-server.ts'
import { said as sentOf } from '../../support/said.ts'

const world = globalThis as { lentByOwners?: Context }

interface House {
	gateway: TestGateway
	model: ModelServer
	issuer: Awaited<ReturnType<typeof startIssuer>>
	ctx: Context
	/** Makes a token that may run and read. */
	token(): Promise<string>
	/** A chat completion; answers with the user's messages that the model was sent. */
	chat(token: string | undefined, words: string, headers?: Record<string, string>, more?: object): Promise<string[]>
	respond(token: string | undefined, input: unknown, more?: object): Promise<{ status: number; body: { id: string } }>
	/** The user's messages of the newest call of the model. */
	said(): string[]
}

async function house(t: Test): Promise<House> {
	const model = await startModelServer()
	t.teardown(() => model.stop())
	model.on(/^(?![^]*what time)/, 'Well.')
	const issuer = await startIssuer(t)
	const lender = "export default { name: 'lender', start: (ctx) => { globalThis.lentByOwners = ctx } }"
	const gateway = await startGateway({
		config: `plugins: {openai-api: {user_is_conversation: true}, lender: true}
providers: {model: {kind: openai, base_url: '${model.url}', api_key: sk-test, model: m}}
auth:
  oidc:
    issuer: ${issuer.url}
    audience: ${AUDIENCE}
    rules: [{when: {groups: staff}, scopes: [runs:write, agents:read]}]
`,
		files: { 'plugins/lender/index.js': lender },
	})
	t.teardown(async () => {
		await gateway.stop()
		delete world.lentByOwners
	})
	await gateway.request('POST', '/v1/agents', { body: { name: 'ada' } })
	const said = (): string[] =>
		sentOf(model.requests().at(-1)?.messages)
			.filter(({ role }) => role === 'user')
			.map(({ content }) => String(content))
	return {
		gateway,
		model,
		issuer,
		ctx: world.lentByOwners as Context,
		async token() {
			const body = { scopes: ['runs:write', 'agents:read'] }
			return (await gateway.request('POST', '/v1/auth/tokens', { body })).body.token
		},
		async chat(token, words, headers = {}, more = {}) {
			const body = { model: 'ada', messages: [{ role: 'user', content: words }], ...more }
			const { status } = await gateway.request('POST', '/v1/chat/completions', {
				body,
				headers,
				...(token !== undefined && { token }),
			})
			t.equal(status, 200, words)
			return said()
		},
		respond: (token, input, more = {}) =>
			gateway.request('POST', '/v1/responses', {
				body: { model: 'ada', input, ...more },
				...(token !== undefined && { token }),
			}),
		said,
	}
}

const plans = { 'x-svc-conversation': 'plans' }

void t.test('two tokens and a local caller that use one name have three conversations', async (t) => {
	const { gateway, token, chat } = await house(t)
	const [ann, bob] = [await token(), await token()]
	for (const [who, name] of [
		[ann, 'ann'],
		[bob, 'bob'],
		[undefined, 'local'],
	] as const) {
		t.strictSame(await chat(who, `${name} 1`, plans), [`${name} 1`])
		t.strictSame(await chat(who, `${name} 2`, plans), [`${name} 1`, `${name} 2`])
	}
	t.strictSame(await chat(ann, 'ann 3', {}, { user: 'plans' }), ['ann 1', 'ann 2', 'ann 3'], 'user is the same name')
	const { body } = await gateway.request('GET', '/v1/agents/ada/history?conversation=openai:local:plans')
	t.match(body, [{ content: 'local 1' }, {}, { content: 'local 2' }, {}])

	const list = await gateway.request('GET', '/v1/agents/ada/conversations', { token: bob })
	const { conversations } = list.body as unknown as {
		conversations: { conversation: string; newest_run: { prompt: string; trigger: string } }[]
	}
	t.strictSame(
		conversations.map(({ newest_run: { prompt, trigger } }) => [trigger, prompt]),
		['ann 3', 'local 2', 'bob 2'].map((prompt) => ['openai', prompt]),
		'with agents:read, those of everyone are listed and read',
	)
	const one = `/v1/agents/ada/conversations/${encodeURIComponent(conversations[0]?.conversation ?? '')}`
	t.match((await gateway.request('GET', one, { token: bob })).body.turns, [
		{ messages: [{ content: 'ann 3' }, {}] },
		{},
		{},
	])
	const runs_only = (await gateway.request('POST', '/v1/auth/tokens', { body: { scopes: ['runs:write'] } })).body.token
	for (const path of [one, '/v1/agents/ada/conversations'])
		t.match((await gateway.request('GET', path, { token: runs_only })).body, {
			statusCode: 403,
			message: /agents:read/,
		})
})

void t.test('a response is read, continued, named and deleted by its owner only', async (t) => {
	const { gateway, token, respond, said } = await house(t)
	const owners = [await token(), await token(), undefined]
	for (const [at, owner] of owners.entries()) {
		const mine = await respond(owner, `secret of ${at}`)
		t.equal(mine.status, 200)
		const { id } = mine.body
		const path = `/v1/responses/${id}`
		const item = { type: 'item_reference', id: id.replace(/^resp_.{32}/, 'msg_') }
		for (const other of owners.filter((one) => one !== owner)) {
			const as = other === undefined ? {} : { token: other }
			const missing = await gateway.request('GET', '/v1/responses/resp_none', as)
			for (const method of ['GET', 'DELETE']) {
				const { status, body } = await gateway.request(method, path, as)
				t.equal(status, 404)
				t.equal(body.error.message.replace(id, 'resp_none'), missing.body.error.message, 'as if it did not exist')
			}
			t.equal((await respond(other, 'go on', { previous_response_id: id })).status, 404)
			t.equal((await respond(other, [item, { role: 'user', content: 'go on' }])).status, 400)
		}
		const as = owner === undefined ? {} : { token: owner }
		t.equal((await gateway.request('GET', path, as)).status, 200)
		t.equal((await respond(owner, 'go on', { previous_response_id: id })).status, 200)
		t.strictSame(said(), [`secret of ${at}`, 'go on'])
		t.equal((await gateway.request('DELETE', path, as)).status, 200)
	}
})

void t.test('a conversation of 0.1.0 continues for the first owner who uses its name', async (t) => {
	const { gateway, ctx, token, chat, respond, said } = await house(t)
	const ann = await token()
	const bob = await token()
	const agent = await ctx.use('agents').get('ada')
	// As 0.1.0 kept them: one conversation for everybody.
	const before = async (name: string): Promise<void> => {
		const { run_id } = await ctx
			.use('runs')
			.start(agent, { prompt: `before in ${name}`, conversation: `openai:user:${name}`, trigger: 'openai' })
		while ((await ctx.use('runs').get(run_id)).ended_at === null) await pause(5)
	}
	await before('plans')
	await before('garden')
	const old = await respond(ann, 'kept', { user: 'garden' })
	const key = [`agent:${agent.uid}`, 'openai-response', old.body.id.slice(-32)] as const
	const record = (await ctx.store.get<Record<string, unknown>>(key))?.value ?? {}
	const { owner: _, ...ownerless } = record
	await ctx.store.put(key, ownerless)
	await pause(2)
	const late = await token()

	t.strictSame(await chat(late, 'late', plans), ['late'], 'who came later does not get it')
	t.strictSame(await chat(ann, 'ann 1', plans), ['before in plans', 'ann 1'])
	t.strictSame(await chat(bob, 'bob 1', plans), ['bob 1'])
	t.strictSame(await chat(undefined, 'local 1', plans), ['local 1'])
	t.strictSame(await chat(ann, 'ann 2', plans), ['before in plans', 'ann 1', 'ann 2'])
	const { body } = await gateway.request('GET', '/v1/agents/ada/history?conversation=openai:user:plans')
	t.equal(body.length, 6, 'it is read under its old name')

	await before('local')
	t.strictSame(await chat(undefined, 'me', { 'x-svc-conversation': 'local' }), ['before in local', 'me'])
	t.strictSame(await chat(bob, 'me too', { 'x-svc-conversation': 'local' }), ['me too'])

	// A response without an owner: for callers of its time, and its conversation follows the rule above.
	await ctx.store.put(key, { ...ownerless, created_at: 1 })
	t.equal((await gateway.request('GET', `/v1/responses/${old.body.id}`, { token: bob })).status, 404, 'it is newer')
	t.equal((await gateway.request('GET', `/v1/responses/${old.body.id}`)).status, 200, 'local callers were always there')
	await ctx.store.put(key, ownerless)
	t.equal((await gateway.request('GET', `/v1/responses/${old.body.id}`, { token: bob })).status, 200)
	await respond(bob, 'bob goes on', { previous_response_id: old.body.id })
	t.notOk(said().includes('before in garden'), 'Ann has used this name')
	await respond(ann, 'ann goes on', { previous_response_id: old.body.id })
	t.match(said(), ['before in garden', 'kept', 'ann goes on'])
})

void t.test('results of calls lead on from a run of their own owner only', async (t) => {
	const { gateway, model, token, issuer } = await house(t)
	const [ann, bob] = [await token(), await token()]
	model.on('what time', {
		tools: [
			{ name: 'memory_stm_write', arguments: { key: 'mood', value: 'private' }, id: 'm1' },
			{ name: 'clock', arguments: {}, id: 'c1' },
		],
	})
	const tools = [{ type: 'function', function: { name: 'clock' } }]
	const messages: object[] = [{ role: 'user', content: 'what time' }]
	const ask = async (who: string) =>
		(await gateway.request('POST', '/v1/chat/completions', { token: who, body: { model: 'ada', messages, tools } }))
			.body
	const { message } = (await ask(ann)).choices[0]
	messages.push(message, { role: 'tool', tool_call_id: message.tool_calls[0].id, content: 'noon' })
	const sent = (): string => JSON.stringify(sentOf(model.requests().at(-1)?.messages))
	await ask(bob)
	t.match(sent(), /noon/)
	t.notMatch(sent(), /mood/, 'what the run of another did by itself')
	await ask(ann)
	t.match(sent(), /mood.*noon/)

	// Callers of the identity provider own their runs, too.
	const cleo = await issuer.sign({ sub: 'cleo', groups: 'staff' })
	const dan = await issuer.sign({ sub: 'dan', groups: 'staff' })
	messages.splice(1)
	const { message: asked } = (await ask(cleo)).choices[0]
	messages.push(asked, { role: 'tool', tool_call_id: asked.tool_calls[0].id, content: 'dusk' })
	await ask(dan)
	t.notMatch(sent(), /mood/)
	await ask(cleo)
	t.match(sent(), /mood.*dusk/)
})
