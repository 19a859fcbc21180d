/** `svc channels`, with a bot on a Telegram server for tests. */
import t from 'tap'
import { addToken } from '../../support/add.ts'
import { startGateway } from '../../support/gateway.ts'
import { startTelegram } from '../../support/telegram.ts'
import { svcFor } from '../../support/cli.ts'

/** A platform with its own settings and addresses other than HTTP. The bot's name is its configuration as JSON. */
const radio = `
export default {
	name: 'radio',
	needs: ['channels'],
	start: (ctx) => ctx.extend('channel', {
		type: 'radio',
		aliases: ['short_wave'],
		label: 'Radio',
		can: { formats: [{ markup: 'plain', max_length: 400 }] },
		schemes: ['irc', 'ircs'],
		config: (joi) => joi.object({
			port: joi.number().port(),
			nick: joi.object({ name: joi.string(), visible: joi.boolean() }),
			bands: joi.array().items(joi.string()),
		}),
		connect: async ({ config }) => ({ name: JSON.stringify(config), send: async () => ({ id: '1' }), close: async () => {} }),
	}),
}
`
const gateway = await startGateway({
	config: 'plugins: {radio: true}\nchannels: {allowed_api_roots: ["127.0.0.1:6697"]}\n',
	files: { 'plugins/radio/index.js': radio },
})
const telegram = await startTelegram()
t.teardown(async () => {
	await gateway.stop()
	await telegram.stop()
})
const svc = svcFor(gateway)
await gateway.request('POST', '/v1/agents', { body: { name: 'ada' } })
const root = ['--api-root', telegram.url]

void t.test('a bot is added, paired with chats, changed and removed', async (t) => {
	const added = await svc(['channels', 'add', 'telegram', '--agent', 'ada', ...root], { input: `${telegram.token}\n` })
	t.match(added, { code: 0, stdout: /connection: connected/, stderr: /svc channels pair CODE/ })
	t.notOk(`${added.stdout}${added.stderr}`.includes(telegram.token))
	const [, id = ''] = /id: +(\S+)/.exec(added.stdout) ?? []
	for (const argv of [
		['add', 'telegram', '--name', 'OTHER'],
		['add', 'telegram', '--secret', 'TELEGRAM_TOKEN'],
		['update', 'telegram'],
	]) {
		const unknown = await svc(['channels', ...argv, '--agent', 'bob'])
		t.match(
			unknown,
			{ code: 4, stderr: 'there is no agent "bob"; "svc agents create NAME" creates one' },
			argv.join(' '),
		)
	}
	t.match((await svc(['vault', '--json'])).json(), [{ name: 'TELEGRAM_TOKEN', policy_label: 'channel' }])

	const chat = telegram.person(42, 'Ada')
	telegram.say(chat, '/start')
	const hint = await telegram.waitFor((message) => /[0-9A-Z]{8}/.test(message.text))
	const [code = ''] = /\b[0-9A-Z]{8}\b/.exec(hint.text) ?? []
	t.equal((await svc(['channels', 'pair', 'discord', code])).code, 4, 'no such channel; the code stays valid')
	t.match(await svc(['channels', 'pair', 'telegram', code]), { code: 0, stdout: /The chat 42 now talks to ada/ })
	t.match(await svc(['channels', 'pair', code]), { code: 2, stderr: /wrong, used or expired/ })
	const [binding] = (await svc(['channels', 'bindings', '--json'])).json()
	const conversation = `channel:${binding.binding_id}`
	t.match(await svc(['say', 'ada', conversation, 'The', 'backup', 'is', 'complete.']), {
		code: 0,
		stdout: /the chat 42/,
	})
	await telegram.waitFor(({ text }) => text === 'The backup is complete.')
	const piped = await svc(['say', 'ada', conversation, '-', '--json'], { input: 'From a pipe.\n' })
	t.match(piped.json(), { conversation, chat_id: '42' })
	await telegram.waitFor(({ text }) => text === 'From a pipe.')
	t.match(await svc(['say', 'ada', conversation, ' ']), { code: 2, stderr: /message is empty/ })
	t.match(await svc(['say', 'ada', 'elsewhere', 'Hello.']), { code: 4, stderr: '; "svc channels bindings" lists' })
	const who = ['--who-may-answer', 'paired', '--paired-by', '42']
	const group = await svc(['channels', 'pair', id, '--chat', '-1001234567890', '--agent', 'ada', ...who, '--json'])
	t.match(group.json(), { agent_id: 'ada', external_chat_id: '-1001234567890' })
	t.match(await svc(['channels', 'pair', id, '--chat', '7']), { code: 2, stderr: /--agent/ })
	t.match(await svc(['channels', 'pair', id, code, '--chat', '7']), { code: 2, stderr: /either/ })

	for (const name of ['telegram', 'chat_a', 'TELEGRAM_TOKEN', id])
		t.match((await svc(['channels', 'show', name, '--json'])).json(), { id, bindings: { length: 2 } }, name)
	t.match((await svc(['channels'])).stdout, new RegExp(`${id} +telegram +connected .* 2 +TELEGRAM_TOKEN`))
	t.match((await svc(['status'])).stdout, /telegram +connected/)
	t.match((await svc(['channels', 'bindings'])).stdout, /telegram +42 +ada +paired .*\n.* -1001234567890 +ada +paired/)
	t.match(await svc(['channels', 'unbind', 'telegram', '42']), { code: 2, stderr: /--yes/ })
	t.equal((await svc(['channels', 'unbind', 'telegram', '-y', '--', '-1001234567890'])).code, 0)
	t.strictSame((await svc(['channels', 'bindings', 'telegram', '--json'])).json().length, 1)

	const changed = await svc(['channels', 'update', 'telegram', '--answer', 'all', '--allow', '42', '43', '--json'])
	t.match(changed.json(), {
		connection: 'connected',
		config: { answer: 'all', allowed_senders: ['42', '43'], agent_id: 'ada' },
	})
	t.match(await svc(['channels', 'update', 'telegram', '--answer', 'none']), { code: 2, stderr: /answer/ })
	t.match(await svc(['channels', 'remove', 'telegram']), { code: 2, stderr: /with 1 chat\?.*--yes/ })
	t.match(await svc(['channels', 'remove', 'telegram', '-y']), { code: 0, stderr: /svc vault delete TELEGRAM_TOKEN/ })
	t.match((await svc(['channels'])).stdout, 'No channels yet')
})

void t.test('a stored token is used by name; a wrong token is reported at once', async (t) => {
	const again = await svc(['channels', 'add', 'telegram', ...root])
	t.match(again, { code: 5, stderr: /--secret TELEGRAM_TOKEN/ }, 'before it reads the token')
	const scopes = ['channels:write', 'channels:read', 'vault:write']
	const { token } = await addToken(gateway, scopes)
	const narrow = await svc(['channels', 'add', 'telegram', '--agent', 'ada', ...root], {
		input: telegram.token,
		env: { SVC_TOKEN: token },
	})
	t.match(narrow, { code: 5, stderr: /--secret TELEGRAM_TOKEN/ }, 'after it, if the caller cannot list secrets')
	const used = await svc(['channels', 'add', 'telegram', '--secret', 'TELEGRAM_TOKEN', ...root, '--json'])
	t.match(used.json(), { connection: 'connected', bot_token_ref: 'TELEGRAM_TOKEN' })
	t.match(await svc(['channels', 'add', 'telegram', '--secret', 'A', '--name', 'B']), { code: 2, stderr: /either/ })

	const wrong = await svc(['channels', 'add', 'telegram', '--name', 'WRONG', ...root], { input: '1:wrong-token' })
	t.match(wrong, { code: 1, stdout: /connection: error/, stderr: /the channel was created, but is not connected/ })
	t.match(await svc(['channels', 'show', 'telegram']), { code: 2, stderr: /2 have the name/ })
	const updated = await svc(['channels', 'update', 'WRONG', '--answer', 'all'])
	t.match(updated, { code: 1, stderr: /the channel was changed, but is not connected/ })
	await svc(['vault', 'delete', 'WRONG', '-y'])
	const removed = await svc(['channels', 'remove', 'WRONG', '-y'])
	t.equal(removed.code, 0)
	t.notMatch(removed.stderr, /vault/, 'the token is already deleted')

	const unknown = await svc(['channels', 'add', 'pigeon', '--name', 'PIGEON'], { input: 'coo coo coo' })
	t.match(unknown, { code: 2, stderr: /a running plugin provides: .*telegram/ })
	t.match(
		await svc(['channels', 'add', 'pigeon']),
		{ code: 2, stderr: /a running plugin provides/ },
		'before the token',
	)
	for (const [typed, meant] of Object.entries({ telegrm: 'telegram', shortwave: 'short_wave' }))
		t.match(await svc(['channels', 'add', typed]), { code: 2, stderr: `did you mean "${meant}"?` })
	t.notMatch(unknown.stderr, /chat_a/, 'the error lists no aliases')
	t.notMatch((await svc(['vault'])).stdout, /PIGEON/, 'an unused token is not stored')
	const typed = [['Token of the bot', `${telegram.token}\r`]] as [string, string][]
	const asked = await svc(['channels', 'add', 'telegram', '--name', 'TYPED', ...root], { person: typed })
	t.notOk(asked.stderr.includes(telegram.token))
	t.match((await svc(['vault'])).stdout, /TYPED +channel/)
})

void t.test('settings of a platform have their types, and are validated by its schema', async (t) => {
	const add = (...set: string[]) =>
		svc(['channels', 'add', 'short-wave', '--name', 'RADIO_TOKEN', '--json', ...set.flatMap((one) => ['--set', one])], {
			input: 'a token of the radio',
		})
	for (const [setting, error] of [
		['port=loud', /config\.port must be a number|port.*must be a number/],
		['port=70000', /port.*valid port/],
		['nick.visible=perhaps', /visible.*must be a boolean/],
		['nick.colour=red', /nick\.colour.*not allowed/],
		['nick', /key=value.*nick.*is not of that form/],
		['=1', /key=value/],
		['a..b=1', /key=value/],
		['api_root=gopher://example.org', /irc:\/\/ or ircs:\/\//],
	] as const)
		t.match(await add(setting), { code: 2, stderr: error }, setting)
	t.match(await add('nick=1', 'nick.name=x'), { code: 2, stderr: /nick is also set to a plain value/ })
	t.notMatch((await svc(['vault'])).stdout, /RADIO/, 'an unused token is not stored')

	const all = [
		'port=7007',
		'nick.name=helper',
		'nick.visible=true',
		'bands=["vhf","uhf"]',
		'api_root=ircs://127.0.0.1:6697',
	]
	const added = await add(...all)
	const config = {
		port: 7007,
		nick: { name: 'helper', visible: true },
		bands: ['vhf', 'uhf'],
		api_root: 'ircs://127.0.0.1:6697',
	}
	t.equal(added.code, 0, added.stderr)
	t.strictSame(added.json().config, config)
	t.strictSame(JSON.parse(added.json().bot), config, 'the adapter receives the same values')
	const update = (...set: string[]) =>
		svc(['channels', 'update', 'radio', '--json', ...set.flatMap((one) => ['--set', one])])
	t.match((await update('port=7008', 'nick.visible=')).json(), {
		config: { ...config, port: 7008, nick: { name: 'helper' } },
	})
	t.strictSame((await update('nick={"visible": true}')).json().config.nick, { visible: true }, 'a map replaces it')
	const updated = await update('bands=null', 'nick.visible=null', 'nick.name="7"')
	t.strictSame(updated.json().config, { port: 7008, nick: { name: '7' }, api_root: config.api_root })
	t.match(
		await svc(['channels', 'update', 'missing', '--set', 'nick']),
		{ code: 2, stderr: /is not of that form/ },
		'reported before the channel is looked up',
	)
	await svc(['channels', 'remove', 'radio', '-y'])

	// Without the scope `*`, a caller may only use addresses of `allowed_api_roots`, whatever their scheme.
	const made = await gateway.request('POST', '/v1/auth/tokens', {
		body: { scopes: ['channels:write', 'channels:read'] },
	})
	const create = async (api_root: string): Promise<number> => {
		const body = { type: 'radio', bot_token_ref: 'RADIO_TOKEN', config: { api_root } }
		return (await gateway.request('POST', '/v1/channels', { body, token: made.body.token })).status
	}
	for (const [api_root, status] of [
		['ircs://127.0.0.1:6697', 201],
		['ircs://127.0.0.1:6698', 403],
		['ircs://127.0.0.1', 403],
		['ircs://127.0.0.2:6697', 403],
		['ircs://me@127.0.0.1:6697', 400],
		['https://127.0.0.1:6697', 400],
	] as const)
		t.equal(await create(api_root), status, api_root)
})
