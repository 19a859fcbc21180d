/** `svc webhooks` and `svc heartbeats`. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { startGateway } from '../../support/gateway.ts'
import { deliver } from './sender.ts'
import { svcFor } from '../../support/cli.ts'

const gateway = await startGateway()
t.teardown(() => gateway.stop())
const svc = svcFor(gateway)
await gateway.request('POST', '/v1/agents', { body: { name: 'ada' } })

void t.test('a webhook is added, tested, listed, rotated and removed', async (t) => {
	const made = await svc(['webhooks', 'add', 'ada', 'github', '--json'])
	t.match(made.json(), { slug: 'github', url: /\/v1\/hooks\//, secret: /^[0-9a-f]{64}$/ })
	t.match(made.stderr, /not shown again/)
	t.equal((await svc(['webhooks', 'add', 'ada', 'github'])).code, 5)
	t.match(await svc(['webhooks', 'add', 'ada', 'Git Hub']), { code: 2, stderr: /a-z 0-9/ })

	const plain = await svc(['webhooks', 'test', 'ada', 'github'])
	const [, run = ''] = /run: +(\S+)/.exec(plain.stdout) ?? []
	t.match(plain.stderr, `svc runs follow ${run}`)
	t.match((await gateway.request('GET', `/v1/runs/${run}`)).body, { trigger: 'webhook', prompt: /"test":true/ })

	const cwd = t.testdir()
	writeFileSync(join(cwd, 'payload.json'), '{"event": "deployed", "by": null}\n')
	const sent = []
	for (const options of [
		{ cwd, argv: ['payload.json'] },
		{ argv: ['-'], input: '"as text"' },
	]) {
		const tested = await svc(['webhooks', 'test', 'ada', 'github', '--json', '--data', ...options.argv], options)
		sent.push((await gateway.request('GET', `/v1/runs/${tested.json().run_id}`)).body.prompt)
	}
	t.match(sent, [/\{"event":"deployed","by":null\}/, /\n"as text"\n/])
	const wrong = [
		[['--data', '-'], 2, /not valid JSON/],
		[['--data', 'nothing.json'], 4, /does not exist/],
	] as const
	for (const [argv, code, stderr] of wrong)
		t.match(await svc(['webhooks', 'test', 'ada', 'github', ...argv], { cwd, input: '{' }), { code, stderr })
	t.match(await svc(['webhooks', 'test', 'ada', 'other']), { code: 4, stderr: /it has github/ })

	await deliver(gateway, { token: made.json().token, secret: 'wrong' }, {})
	const log = await svc(['webhooks', 'deliveries', 'ada', 'github'])
	t.equal(log.stdout.trim().split('\n').length, 5)
	t.match(log.stdout, / 401 +no +127\.0\.0\.1 +- +\S+ does not match the body/)
	const newest = (await svc(['webhooks', 'deliveries', 'ada', 'github', '--limit', '1', '--json'])).json()
	const rest = await svc(['webhooks', 'deliveries', 'ada', 'github', '--before', newest[0].delivery_id, '--json'])
	t.equal(rest.json().length, 3)
	t.match(await svc(['webhooks', 'deliveries', 'ada', 'github', '--limit', 'x']), { code: 2, stderr: /limit/ })
	t.match((await svc(['webhooks', 'list', 'ada'])).stdout, new RegExp(`github +svc +3 .*${made.json().token}`))

	t.match(await svc(['webhooks', 'rotate', 'ada', 'github']), { code: 2, stderr: /--yes/ })
	const rotated = await svc(['webhooks', 'rotate', 'ada', 'github', '-y'])
	t.match(rotated.stdout, /url: +\S+\nsecret: [0-9a-f]{64}/)
	t.notMatch(rotated.stdout, made.json().token)
	t.match(await svc(['webhooks', 'remove', 'ada', 'github']), { code: 2, stderr: /--yes/ })
	t.equal((await svc(['webhooks', 'remove', 'ada', 'github', '-y'])).code, 0)
	t.match((await svc(['webhooks', 'list', 'ada'])).stdout, 'No webhooks yet')
})

void t.test('the next step depends on who creates the secret', async (t) => {
	const theirs = await svc(['webhooks', 'add', 'ada', 'payments', '--scheme', 'stripe'])
	t.match(theirs.stderr, 'svc webhooks set-secret ada payments -')
	t.notMatch(theirs.stderr, 'give both')
	const checked = await svc(['webhooks', 'add', 'ada', 'talk', '--scheme', 'slack'])
	t.match(checked.stderr, /Next: store .*svc webhooks set-secret ada talk -\nThen give it the address/)
	const argv = ['webhooks', 'add', 'ada', 'chat', '--scheme', 'slack', '--secret', '-']
	const known = await svc(argv, { input: 'signing-secret-of-slack' })
	t.match(known.stderr, 'Next: give the address to the other service')
	t.notMatch(known.stderr, /give both|set-secret/)
	t.match((await svc(['webhooks', 'add', 'ada', 'code', '--scheme', 'github'])).stderr, 'give both')
	t.match((await svc(['webhooks', 'rotate', 'ada', 'payments', '-y'])).stderr, 'svc webhooks set-secret ada payments -')
})

void t.test('a heartbeat is added, listed and removed', async (t) => {
	const cron = ['--cron', '0 9 * * 1-5', '--timezone', 'Europe/Berlin', '--json']
	const first = await svc(['heartbeats', 'add', 'ada', 'Look', 'at the news.', ...cron])
	t.match(first.json(), { prompt: 'Look at the news.', cron: '0 9 * * 1-5', timezone: 'Europe/Berlin', every: null })
	const piped = await svc(['heartbeats', 'add', 'ada', '-', '--every', '30m'], { input: 'Check\nthe queue.' })
	t.match(piped.stdout, /ada starts next at 2\d+-\S+ [\d:]+ [A-Z]/)
	const list = (await svc(['heartbeats', 'list', 'ada'])).stdout
	t.match(list, /0 9 \* \* 1-5 Europe\/Berlin .*Look at the news\./)
	t.match(list, /every 30m +2\d+-\S+ [\d:]+ [A-Z].*Check the queue\./)
	const once = await svc(['heartbeats', 'add', 'ada', 'Tea!', '--at', 'in 4 minutes', '--json'])
	t.match(once.json(), { prompt: 'Tea!', every: null, cron: null, at: /Z$/ })
	const { id } = once.json()
	t.match((await svc(['heartbeats', 'pause', 'ada', id])).stdout, `Paused ${id}.`)
	t.match((await svc(['heartbeats', 'list', 'ada'])).stdout, /once +paused +- +Tea!/)
	t.match((await svc(['heartbeats', 'resume', 'ada', id])).stdout, /ada starts next at 2\d+-\S+ [\d:]+ [A-Z]/)
	const changed = await svc(['heartbeats', 'change', 'ada', id, 'Coffee!', '--every', '1h', '--json'])
	t.match(changed.json(), { id, prompt: 'Coffee!', every: '1h', at: null })
	t.match(await svc(['heartbeats', 'change', 'ada', id]), { code: 2, stderr: /give a prompt, or one of/ })
	t.equal((await svc(['heartbeats', 'remove', 'ada', id, '-y'])).code, 0)
	for (const argv of [[], ['--cron', '* * * * *', '--every', '1h']])
		t.match(await svc(['heartbeats', 'add', 'ada', 'x', ...argv]), {
			code: 2,
			stderr: /one of --cron, --every and --at/,
		})
	t.match(await svc(['heartbeats', 'add', 'ada', 'x', '--every', 'soon']), { code: 2, stderr: /every/ })
	t.match(await svc(['heartbeats', 'remove', 'ada', first.json().id]), { code: 2, stderr: /--yes/ })
	t.equal((await svc(['heartbeats', 'remove', 'ada', first.json().id, '-y'])).code, 0)
	t.equal((await svc(['heartbeats', 'list', 'ada', '--json'])).json().length, 1)
	t.equal((await svc(['heartbeats', 'remove', 'ada', first.json().id, '-y'])).code, 4)
})

void t.test('--deliver names a chat by its platform or its channel', async (t) => {
	await gateway.request('POST', '/v1/agents', { body: { name: 'eve' } })
	const channel = async (name: string): Promise<string> => {
		await gateway.request('POST', '/v1/vault/secrets', { body: { name, value: `100200:${name}` } })
		const body = { type: 'chat_a', bot_token_ref: name, config: { api_root: 'http://127.0.0.1:9' } }
		return (await gateway.request('POST', '/v1/channels', { body })).body.id
	}
	const id = await channel('BOT_A')
	await gateway.request('POST', '/v1/channels/pair', {
		body: { agent_id: 'eve', channel_id: id, external_chat_id: '-42:7' },
	})
	const deliver = { channel: id, chat: '-42:7' }
	const add = (to: string, n: number) => svc(['webhooks', 'add', 'eve', `hook-${n}`, '--deliver', to])
	const beat = (to: string) => svc(['heartbeats', 'add', 'eve', 'hello', '--every', '1h', '--deliver', to, '--json'])

	t.equal((await add('telegram:-42:7', 1)).code, 0)
	t.match((await gateway.request('GET', '/v1/agents/eve/webhooks')).body, [{ slug: 'hook-1', deliver }])
	const beating = (await beat('chat_a:-42:7')).json()
	t.match(beating, { deliver })
	const silent = ['heartbeats', 'change', 'eve', beating.id, '--deliver', 'none', '--json']
	t.match((await svc(silent)).json(), { deliver: 'none' })
	for (const wrong of ['telegram', ':42', 'telegram:'])
		t.match(await beat(wrong), { code: 2, stderr: /two parts.*telegram:42/ })
	t.match(await add('telegram:43', 2), { code: 2, stderr: /chat "43".* is not bound to agent "eve"/ })

	await channel('BOT_B')
	t.match(await add('telegram:-42:7', 3), { code: 2, stderr: /id of its channel/ })
	t.equal((await add(`${id}:-42:7`, 3)).code, 0)
})
