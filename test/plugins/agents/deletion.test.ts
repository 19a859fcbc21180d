/** Deletes agents while their data is written: nothing remains. */
import { setImmediate as turn } from 'node:timers/promises'
import t from 'tap'
import { isFault } from '../../../core/errors.ts'
import type { AgentRef } from '../../../core/plugin.ts'
import { contextProbe } from '../../support/context-probe.ts'
import { startGateway } from '../../support/gateway.ts'
import { addChannel, loopFiles, openLoop } from '../../support/loop.ts'
import { skillText } from '../../support/skills.ts'
import { eventually } from '../../support/wait.ts'

const SECRETS = 40

openLoop()
const probe = contextProbe()
const gateway = await startGateway({
	config: 'plugins: {loop: true, probe: true}\nwebhooks: {max_per_agent: 1000}\n',
	files: { ...loopFiles(), ...probe.files },
})
t.teardown(() => gateway.stop())
const ctx = probe.context()
const channel_id = await addChannel(gateway, 'deletion-token', {})
for (let n = 0; n < SECRETS; n++) await ctx.use('vault').secrets.create({ name: `SECRET_${n}`, value: `value ${n}` })

/** Writes of each kind of data; each `n` writes a different record. */
const writes: Record<string, (agent: AgentRef, n: number) => Promise<unknown>> = {
	'a run': (agent, n) =>
		ctx.use('runs').start(agent, { prompt: 'Hello.', trigger: 'api', conversation: `conversation-${n}` }),
	'a message without a run': (agent, n) =>
		ctx
			.use('runs')
			.say(agent, { conversation: `conversation-${n}`, content: 'Hello.', about: 'Why.', also: async () => [] }),
	'a session': (agent) => ctx.use('runs').newSession(agent),
	'a conversation to forget': (agent) => ctx.use('runs').clear(agent),
	'a skill': (agent, n) =>
		ctx.use('skills').install(
			agent,
			{
				files: [
					{ path: 'SKILL.md', bytes: Buffer.from(skillText(`skill-${n}`, 'Text.')) },
					{ path: 'data.bin', bytes: Buffer.alloc(1024 * 1024 + n) },
				],
				left_out: [],
			},
			{ kind: 'inline' },
		),
	'a memory': (agent, n) => ctx.use('memory').store(agent, { content: `Fact ${n}.`, key: `call-${n}` }),
	'a compaction': async (agent) => void (await ctx.use('memory').compact(agent)),
	'an MCP server': (agent, n) =>
		ctx
			.use('mcp')
			.add(
				agent,
				{ name: `server-${n}`, transport: 'http', url: 'http://127.0.0.1:9/' },
				{ trusted: true, secrets: true },
			),
	'an attachment': (agent, n) =>
		ctx.use('attachments').take(agent, [{ bytes: Buffer.from(`file ${n}`) }, { bytes: Buffer.alloc(3_000_000, n) }]),
	'a heartbeat': (agent) => ctx.use('heartbeats').create(agent, { every: '1h', prompt: 'Hello.' }),
	'a webhook': (agent, n) => ctx.use('webhooks').register(agent, { slug: `hook-${n}` }),
	'a grant': ({ name }, n) =>
		ctx.use('vault').grants.create({ agent_id: name, secret: `SECRET_${n % SECRETS}`, reveal: false }),
	'a binding': async ({ name }, n) =>
		ctx
			.use('channels')
			.bind({ agent: await ctx.use('agents').get(name), channel_id, external_chat_id: `${name}:${n}` }),
	'a record of another plugin': ({ uid }, n) => ctx.store.put([`agent:${uid}`, 'other', String(n)], n),
	'a new record of another plugin': ({ uid }, n) => ctx.store.create([`agent:${uid}`, 'new', String(n)], n),
	'records of another plugin': ({ uid }, n) =>
		ctx.store.commit(`agent:${uid}`, [{ key: [`agent:${uid}`, 'many', String(n)], value: n, expect: null }]),
}

for (const [kind, write] of Object.entries(writes)) {
	void t.test(`deletes ${kind} that is written while the agent is deleted`, async (t) => {
		const name = kind.replaceAll(' ', '-')
		await gateway.request('POST', '/v1/agents', { body: { name } })
		const { uid } = await ctx.use('agents').get(name)
		const agent = { name, uid }
		const begun = Promise.withResolvers<void>()
		/** Writes until the agent is gone. A write that fails because of a limit or a concurrent write is not the end. */
		const writer = async (from: number): Promise<unknown> => {
			for (let n = from; ; n++) {
				try {
					await write(agent, n)
				} catch (error) {
					if (!isFault(error, 'conflict', 'already_exists')) return error
					await turn()
				}
				begun.resolve()
			}
		}
		const writers = [0, 1000, 2000].map(writer)
		await begun.promise
		t.equal((await gateway.request('DELETE', `/v1/agents/${name}`)).status, 204)
		for (const error of await Promise.all(writers)) t.match(error, { code: 'not_found' })
		await t.rejects(write(agent, 3000), { code: 'not_found' }, 'later writes fail too')

		t.strictSame(await keysUnder(`agent:${uid}`), [])
		// Records in other scopes are invalid at once. Their plugins remove them when they receive the event of the deletion.
		const keysInOtherScopes = async (): Promise<string[]> => [
			...(await keysUnder('vault', 'grant', uid)),
			...(await keysUnder(`channel:${channel_id}`)).filter((key) => key.includes(` ${name}:`)),
		]
		t.strictSame(await eventually(keysInOtherScopes, (keys) => keys.length === 0), [])
	})
}

async function keysUnder(scope: string, ...parts: string[]): Promise<string[]> {
	const entries = await Array.fromAsync(ctx.store.list([scope, ...parts]))
	return entries.map(({ key }) => key.join(' '))
}
