/** Conversations and responses belong to the token that created them; those of 0.1.0, which had no owner, get one. */
import t from 'tap'
import type { Test } from 'tap'
import type { Context } from '../../../core/plugin.ts'
import type {} from '../../../plugins/runs/contract.ts'
import type {} from '../../../plugins/agents/contract.ts'
import { addToken } from '../../support/add.ts'
import { startGateway } from '../../support/gateway.ts'
import type { TestGateway } from '../../support/gateway.ts'
import { AUDIENCE, startIssuer } from '../../support/issuer.ts'
import { startModelServer } from '../../support/model-server.ts'
import type { ModelServer } from '../../support/model-server.ts'
import { contextProbe } from '../../support/context-probe.ts'
import { withoutAdditions } from '../../support/model-messages.ts'
import { providersAt } from '../../support/providers.ts'
import { eventually } from '../../support/wait.ts'

interface Setup {
	gateway: TestGateway
	model: ModelServer
	issuer: Awaited<ReturnType<typeof startIssuer>>
	ctx: Context
	/** Creates a token with the scopes runs:write and agents:read. */
	token(): Promise<string>
	/** Makes a chat completion, and returns the user's messages that the model got. */
	chat(token: string | undefined, content: string, headers?: Record<string, string>, fields?: object): Promise<string[]>
	respond(token: string | undefined, input: unknown, fields?: object): Promise<{ status: number; body: { id: string } }>
	/** The user's messages of the newest call of the model. */
	sent(): string[]
}

async function setUp(t: Test): Promise<Setup> {
	const model = await startModelServer()
	t.teardown(() => model.stop())
	model.on(/^(?![^]*what time)/, 'Well.')
	const issuer = await startIssuer(t)
	const { files, context } = contextProbe()
	const gateway = await startGateway({
		config: `plugins: {openai-api: {user_is_conversation: true}, probe: true}
${providersAt({ model: model.url })}auth:
  oidc:
    issuer: ${issuer.url}
    audience: ${AUDIENCE}
    rules: [{when: {groups: staff}, scopes: [runs:write, agents:read]}]
`,
		files,
	})
	t.teardown(() => gateway.stop())
	await gateway.request('POST', '/v1/agents', { body: { name: 'ada' } })
	const sent = (): string[] =>
		withoutAdditions(model.requests().at(-1)?.messages)
			.filter(({ role }) => role === 'user')
			.map(({ content }) => String(content))
	return {
		gateway,
		model,
		issuer,
		ctx: context(),
		async token() {
			const body = { scopes: ['runs:write', 'agents:read'] }
			return (await gateway.request('POST', '/v1/auth/tokens', { body })).body.token
		},
		async chat(token, content, headers = {}, fields = {}) {
			const body = { model: 'ada', messages: [{ role: 'user', content }], ...fields }
			const { status } = await gateway.request('POST', '/v1/chat/completions', {
				body,
				headers,
				...(token !== undefined && { token }),
			})
			t.equal(status, 200, content)
			return sent()
		},
		respond: (token, input, fields = {}) =>
			gateway.request('POST', '/v1/responses', {
				body: { model: 'ada', input, ...fields },
				...(token !== undefined && { token }),
			}),
		sent,
	}
}

const plans = { 'x-svc-conversation': 'plans' }

void t.test('two tokens and a local caller that use the same name have three conversations', async (t) => {
	const { gateway, token, chat } = await setUp(t)
	const [ann, bob] = [await token(), await token()]
	for (const [caller, name] of [
		[ann, 'ann'],
		[bob, 'bob'],
		[undefined, 'local'],
	] as const) {
		t.strictSame(await chat(caller, `${name} 1`, plans), [`${name} 1`])
		t.strictSame(await chat(caller, `${name} 2`, plans), [`${name} 1`, `${name} 2`])
	}
	t.strictSame(
		await chat(ann, 'ann 3', {}, { user: 'plans' }),
		['ann 1', 'ann 2', 'ann 3'],
		'`user` names the same conversation',
	)
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
	const path = `/v1/agents/ada/conversations/${encodeURIComponent(conversations[0]?.conversation ?? '')}`
	t.match((await gateway.request('GET', path, { token: bob })).body.turns, [
		{ messages: [{ content: 'ann 3' }, {}] },
		{},
		{},
	])
	const runs_only = (await addToken(gateway, ['runs:write'])).token
	for (const forbidden of [path, '/v1/agents/ada/conversations'])
		t.match((await gateway.request('GET', forbidden, { token: runs_only })).body, {
			statusCode: 403,
			message: /agents:read/,
		})
})

void t.test('only its owner can read, continue, reference and delete a response', async (t) => {
	const { gateway, token, respond, sent } = await setUp(t)
	const owners = [await token(), await token(), undefined]
	for (const [at, owner] of owners.entries()) {
		const created = await respond(owner, `secret of ${at}`)
		t.equal(created.status, 200)
		const { id } = created.body
		const path = `/v1/responses/${id}`
		const item = { type: 'item_reference', id: id.replace(/^resp_.{32}/, 'msg_') }
		for (const other of owners.filter((candidate) => candidate !== owner)) {
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
		t.strictSame(sent(), [`secret of ${at}`, 'go on'])
		t.equal((await gateway.request('DELETE', path, as)).status, 200)
	}
})

void t.test('a conversation of 0.1.0 continues for the first owner who uses its name', async (t) => {
	const { gateway, ctx, token, chat, respond, sent } = await setUp(t)
	const ann = await token()
	const bob = await token()
	const agent = await ctx.use('agents').get('ada')
	// As 0.1.0 stored them: one conversation for all callers.
	const before = async (name: string): Promise<void> => {
		const { run_id } = await ctx
			.use('runs')
			.start(agent, { prompt: `before in ${name}`, conversation: `openai:user:${name}`, trigger: 'openai' })
		await eventually(async () => (await ctx.use('runs').get(run_id)).ended_at !== null)
	}
	await before('plans')
	await before('garden')
	const old = await respond(ann, 'kept', { user: 'garden' })
	const key = [`agent:${agent.uid}`, 'openai-response', old.body.id.slice(-32)] as const
	const record = (await ctx.store.get<Record<string, unknown>>(key))?.value ?? {}
	const { owner: _, ...ownerless } = record
	await ctx.store.put(key, ownerless)
	const stored_at = Date.now()
	await eventually(() => Date.now() > stored_at)
	const late = await token()

	t.strictSame(await chat(late, 'late', plans), ['late'], 'a later token does not get it')
	t.strictSame(await chat(ann, 'ann 1', plans), ['before in plans', 'ann 1'])
	t.strictSame(await chat(bob, 'bob 1', plans), ['bob 1'])
	t.strictSame(await chat(undefined, 'local 1', plans), ['local 1'])
	t.strictSame(await chat(ann, 'ann 2', plans), ['before in plans', 'ann 1', 'ann 2'])
	const { body } = await gateway.request('GET', '/v1/agents/ada/history?conversation=openai:user:plans')
	t.equal(body.length, 6, 'it can be read under its old name')

	await before('local')
	t.strictSame(await chat(undefined, 'me', { 'x-svc-conversation': 'local' }), ['before in local', 'me'])
	t.strictSame(await chat(bob, 'me too', { 'x-svc-conversation': 'local' }), ['me too'])

	// A response without an owner belongs to callers that existed then; its conversation follows the rule above.
	await ctx.store.put(key, { ...ownerless, created_at: 1 })
	t.equal(
		(await gateway.request('GET', `/v1/responses/${old.body.id}`, { token: bob })).status,
		404,
		'the token is newer',
	)
	t.equal(
		(await gateway.request('GET', `/v1/responses/${old.body.id}`)).status,
		200,
		'local callers have always existed',
	)
	await ctx.store.put(key, ownerless)
	t.equal((await gateway.request('GET', `/v1/responses/${old.body.id}`, { token: bob })).status, 200)
	await respond(bob, 'bob goes on', { previous_response_id: old.body.id })
	t.notOk(sent().includes('before in garden'), 'Ann has used this name')
	await respond(ann, 'ann goes on', { previous_response_id: old.body.id })
	t.match(sent(), ['before in garden', 'kept', 'ann goes on'])
})

void t.test('results of calls continue only a run of the same owner', async (t) => {
	const { gateway, model, token, issuer } = await setUp(t)
	const [ann, bob] = [await token(), await token()]
	model.on('what time', {
		tools: [
			{ name: 'memory_stm_write', arguments: { key: 'mood', value: 'private' }, id: 'm1' },
			{ name: 'clock', arguments: {}, id: 'c1' },
		],
	})
	const tools = [{ type: 'function', function: { name: 'clock' } }]
	const messages: object[] = [{ role: 'user', content: 'what time' }]
	const ask = async (caller: string) =>
		(await gateway.request('POST', '/v1/chat/completions', { token: caller, body: { model: 'ada', messages, tools } }))
			.body
	const { message } = (await ask(ann)).choices[0]
	messages.push(message, { role: 'tool', tool_call_id: message.tool_calls[0].id, content: 'noon' })
	const sent = (): string => JSON.stringify(withoutAdditions(model.requests().at(-1)?.messages))
	await ask(bob)
	t.match(sent(), /noon/)
	t.notMatch(sent(), /mood/, 'the steps of a run of another owner')
	await ask(ann)
	t.match(sent(), /mood.*noon/)

	// Users of the identity provider own their runs as well.
	const cleo = await issuer.sign({ sub: 'cleo', groups: 'staff' })
	const dan = await issuer.sign({ sub: 'dan', groups: 'staff' })
	messages.splice(1)
	const { message: called } = (await ask(cleo)).choices[0]
	messages.push(called, { role: 'tool', tool_call_id: called.tool_calls[0].id, content: 'dusk' })
	await ask(dan)
	t.notMatch(sent(), /mood/)
	await ask(cleo)
	t.match(sent(), /mood.*dusk/)
})
