/** Deliveries signed by each scheme as its sender documents it. */
import { createHmac, createSecretKey } from 'node:crypto'
import t from 'tap'
import { schemeNames } from '../../../plugins/webhooks/contract.ts'
import type { SchemeName } from '../../../plugins/webhooks/contract.ts'
import { schemes } from '../../../plugins/webhooks/schemes.ts'
import { signatureProblem } from '../../../plugins/webhooks/signature.ts'
import { startGateway } from '../../support/gateway.ts'
import { beginPost } from '../../support/slow-request.ts'
import { sign } from './sender.ts'

interface Message {
	secret: string
	body: string
	/** Seconds since 1970. */
	time: number
	id: string
}

const hmac = (key: string | Buffer, text: string, algorithm = 'sha256') => createHmac(algorithm, key).update(text)
const hex = ({ secret, body }: Message): string => hmac(secret, body).digest('hex')

/** The headers of a delivery. */
const senders: Record<SchemeName, (message: Message) => Record<string, string>> = {
	svc: (one) => ({ 'x-signature': `sha256=${hex(one)}`, 'x-delivery-id': one.id }),
	github: (one) => ({ 'x-hub-signature-256': `sha256=${hex(one)}`, 'x-github-delivery': one.id }),
	gitlab: ({ secret, id }) => ({ 'x-gitlab-token': secret, 'x-gitlab-event': 'Push Hook', 'idempotency-key': id }),
	'standard-webhooks': ({ secret, body, time, id }) => {
		const key = Buffer.from(secret.replace('whsec_', ''), 'base64')
		const right = hmac(key, `${id}.${time}.${body}`).digest('base64')
		const other = hmac('another key', body).digest('base64')
		return {
			'webhook-id': id,
			'webhook-timestamp': String(time),
			'webhook-signature': `v1,${other} v1a,asymmetric v1,${right}`,
		}
	},
	stripe: ({ secret, body, time }) => {
		const right = hmac(secret, `${time}.${body}`).digest('hex')
		return { 'stripe-signature': `t=${time},v1=${'0'.repeat(64)},v1=${right},v0=${'1'.repeat(64)}` }
	},
	slack: ({ secret, body, time }) => ({
		'x-slack-request-timestamp': String(time),
		'x-slack-signature': `v0=${hmac(secret, `v0:${time}:${body}`).digest('hex')}`,
	}),
	shopify: ({ secret, body, id }) => ({
		'x-shopify-hmac-sha256': hmac(secret, body).digest('base64'),
		'x-shopify-topic': 'orders/create',
		'x-shopify-webhook-id': id,
	}),
	linear: (one) => ({ 'linear-signature': hex(one), 'linear-delivery': one.id, 'linear-event': 'Issue' }),
	sentry: (one) => ({ 'sentry-hook-signature': hex(one), 'sentry-hook-resource': 'issue', 'request-id': one.id }),
	gitea: (one) => ({ 'x-gitea-signature': hex(one), 'x-gitea-event': 'push', 'x-gitea-delivery': one.id }),
	bitbucket: (one) => ({
		'x-hub-signature': `sha256=${hex(one)}`,
		'x-event-key': 'repo:push',
		'x-request-uuid': one.id,
	}),
	custom: ({ secret, body, time, id }) => ({
		'x-acme-time': String(time * 1000),
		'x-acme-id': id,
		'x-acme-signature': `hmac ${hmac(secret, `${id}|${time * 1000}|${body}`, 'sha512').digest('base64')}`,
	}),
}
const custom = {
	header: 'X-Acme-Signature',
	algorithm: 'sha512',
	encoding: 'base64',
	prefix: 'hmac ',
	signed: '{id}|{timestamp}|{body}',
	timestamp_header: 'X-Acme-Time',
	tolerance_s: 60,
	id_header: 'X-Acme-Id',
}
/** Schemes whose signatures cover the body; `timed`: those that cover a time. */
const signsBody = (scheme: SchemeName): boolean => scheme !== 'gitlab'
const timed = new Set<SchemeName>(['standard-webhooks', 'stripe', 'slack', 'linear', 'custom'])

const gateway = await startGateway()
t.teardown(() => gateway.stop())
await gateway.request('POST', '/v1/agents', { body: { name: 'ada', config: { provider: 'offline' } } })
const path = '/v1/agents/ada/webhooks'
const now = (): number => Math.floor(Date.now() / 1000)

const bodyFor = (time: number, id: string, more: object = {}): string =>
	JSON.stringify({ id: `evt_${id}`, event_id: `Ev${id}`, webhookTimestamp: time * 1000, text: 'Grüße', ...more })

const post = (token: string, body: string, headers: Record<string, string>) =>
	gateway.request('POST', `/v1/hooks/${token}`, {
		body,
		headers: { 'content-type': 'application/json; charset=utf-8', ...headers },
	})

const add = async (slug: string, more: object = {}) => {
	const { status, body } = await gateway.request('POST', path, { body: { slug, ...more } })
	if (status !== 201) throw new Error(JSON.stringify(body))
	return body as { token: string; secret: string }
}

for (const scheme of schemeNames)
	void t.test(`${scheme}: a valid delivery starts one run; a forged, old or repeated one starts none`, async (t) => {
		const { token, secret } = await add(`of-${scheme}`, { scheme, ...(scheme === 'custom' && { custom }) })
		const send = (id: string, time = now(), key = secret, change = (body: string) => body) => {
			const body = bodyFor(time, id)
			return post(token, change(body), senders[scheme]({ secret: key, body, time, id }))
		}
		const time = now()
		const first = await send('first', time)
		t.match(first, { status: 200, body: { status: 'accepted' } })
		t.strictSame((await send('first', time)).body, first.body, 'a repetition has the first response')
		const second = await send('second')
		t.equal(second.status, 200)
		t.not(second.body.delivery_id, first.body.delivery_id)

		const other = `${secret.slice(0, -2)}${secret.endsWith('A=') ? 'E=' : secret.endsWith('00') ? '11' : '00'}`
		const forged = [await send('third', now(), scheme === 'standard-webhooks' ? `whsec_${'A'.repeat(43)}=` : other)]
		if (signsBody(scheme)) forged.push(await send('fourth', now(), secret, (body) => body.replace('ü', 'ý')))
		if (timed.has(scheme)) forged.push(await send('fifth', now() - 400), await send('sixth', now() + 400))
		forged.push(await post(token, bodyFor(now(), 'seventh'), {}))
		for (const { status, body } of forged)
			t.match({ status, body }, { status: 401, body: { code: 'signature_invalid' } })

		const { body: log } = await gateway.request('GET', `${path}/of-${scheme}/deliveries`)
		const runs = (log as unknown as { run_id: string | null }[]).filter(({ run_id }) => run_id !== null)
		t.equal(runs.length, 2)
	})

void t.test('the published examples of senders are accepted', (t) => {
	const check = (scheme: keyof typeof schemes, key: string | Buffer, body: string, headers: object, at = Date.now()) =>
		signatureProblem(
			headers as Record<string, string>,
			createSecretKey(Buffer.from(key as string)),
			Buffer.from(body),
			schemes[scheme],
			at,
		)
	const everybody = "It's a Secret to Everybody"
	const github = { 'x-hub-signature-256': 'sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17' }
	t.equal(check('github', everybody, 'Hello, World!', github), null)
	const bitbucket = { 'x-hub-signature': 'sha256=a4771c39fbe90f317c7824e83ddef3caae9cb3d976c214ace1f2937e133263c9' }
	t.equal(check('bitbucket', everybody, 'Hello World!', bitbucket), null)
	const slack = {
		'x-slack-request-timestamp': '1531420618',
		'x-slack-signature': 'v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503',
	}
	const command =
		'token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c'
	const atSlack = 1_531_420_618_000
	t.equal(check('slack', '8f742231b10e8888abcd99yyyzzz85a5', command, slack, atSlack), null)
	t.match(check('slack', '8f742231b10e8888abcd99yyyzzz85a5', command, slack), /timestamp "1531420618" differs/)
	const standard = {
		'webhook-id': 'msg_p5jXN8AQM9LWM0D4loKWxJek',
		'webhook-timestamp': '1614265330',
		'webhook-signature': 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
	}
	const key = Buffer.from('MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw', 'base64')
	const at = 1_614_265_330_000
	t.equal(check('standard-webhooks', key, '{"test": 2432232314}', standard, at), null)
	const svix = Object.fromEntries(
		Object.entries(standard).map(([name, value]) => [name.replace('webhook', 'svix'), value]),
	)
	t.equal(check('standard-webhooks', key, '{"test": 2432232314}', svix, at), null)
	for (const name of Object.keys(standard)) {
		const { [name as 'webhook-id']: _, ...rest } = standard
		t.match(check('standard-webhooks', key, '{"test": 2432232314}', rest, at), /missing/, name)
	}
	t.end()
})

void t.test('the secret of the sender is set at once, or after the sender has the address', async (t) => {
	const secret = 'whsec_of_the_payments_account'
	const { token } = await add('payments', { scheme: 'stripe' })
	const send = (id: string) => {
		const message = { secret, body: bodyFor(now(), id), time: now(), id }
		return post(token, message.body, senders.stripe(message))
	}
	t.equal((await send('a')).status, 401)
	t.equal((await gateway.request('PUT', `${path}/payments/secret`, { body: { secret } })).status, 204)
	t.equal((await send('b')).status, 200)
	t.equal((await add('known', { scheme: 'gitlab', secret })).secret, secret)
	const refusals: [object, RegExp][] = [
		[{ secret: 'short' }, /at least 16/],
		[{ secret: 'with a space in the middle' }, /printable/],
		[{ scheme: 'standard-webhooks', secret: 'whsec_no base64 at all'.replaceAll(' ', '-') }, /base64/],
		[{ scheme: 'paypal' }, /scheme/],
		[{ scheme: 'custom' }, /custom/],
		[{ scheme: 'github', custom }, /custom/],
		[{ scheme: 'custom', custom: { ...custom, signed: '{timestamp}' } }, /template with \{body\}/],
		[{ scheme: 'custom', custom: { header: 'X-A', signed: '{id}.{body}' } }, /id_header/],
		[{ scheme: 'custom', custom: { header: 'X A' } }, /name of a header/],
	]
	for (const [more, message] of refusals)
		t.match(await gateway.request('POST', path, { body: { slug: 'refused', ...more } }), {
			status: 400,
			body: { message },
		})
	const { body } = await gateway.request('GET', path)
	const list = body as unknown as { slug: string; scheme: string; custom?: object }[]
	t.match(
		list.find(({ slug }) => slug === 'payments'),
		{ scheme: 'stripe' },
	)
	t.strictSame(list.find(({ slug }) => slug === 'of-custom')?.custom, custom)
	t.notMatch(JSON.stringify(list), secret)
})

void t.test('a delivery whose body arrives after a change of the secret requires the new one', async (t) => {
	const { token, secret } = await add('replaced', { scheme: 'svc' })
	const other = 'another-secret-of-the-sender'
	const body = '{"said": "late"}'
	const begin = (signedWith: string) => {
		const type = ['content-type: application/json', `content-length: ${body.length}`]
		const headers = [...type, `x-signature: ${sign(signedWith, body)}`]
		return beginPost(t, gateway, `/v1/hooks/${token}`, headers, body.slice(0, 5))
	}
	const former = await begin(secret)
	const present = await begin(other)
	t.equal((await gateway.request('PUT', `${path}/replaced/secret`, { body: { secret: other } })).status, 204)
	for (const { write } of [former, present]) write(body.slice(5))
	t.match(await former.response, /^HTTP\/1\.1 401 [^]*"code":"signature_invalid"/)
	t.match(await present.response, /^HTTP\/1\.1 200 [^]*"status":"accepted"/)
})

void t.test('a challenge from Slack is answered, and starts no run', async (t) => {
	const { token, secret } = await add('chat', { scheme: 'slack' })
	const body = JSON.stringify({ type: 'url_verification', challenge: 'prove it' })
	const message = { secret, body, time: now(), id: '' }
	t.match(await post(token, body, senders.slack(message)), { status: 200, body: { challenge: 'prove it' } })
	t.equal((await post(token, body, senders.slack({ ...message, secret: `${secret}x` }))).status, 401)
	const form = 'command=%2Fada&text=hello+there'
	const headers = senders.slack({ ...message, body: form })
	const type = { 'content-type': 'application/x-www-form-urlencoded' }
	const first = await post(token, form, { ...headers, ...type })
	t.equal(first.status, 200)
	t.strictSame(
		(await post(token, form, { ...headers, ...type })).body,
		first.body,
		'without an id, the signature identifies the delivery',
	)
	const { body: log } = await gateway.request('GET', `${path}/chat/deliveries`)
	t.equal((log as unknown as { run_id: string | null }[]).filter(({ run_id }) => run_id !== null).length, 1)
})

void t.test('the agent receives the JSON of a form from GitHub', async (t) => {
	const { token, secret } = await add('forms', { scheme: 'github' })
	const json = '{"action":"opened","title":"a + b & c"}'
	const body = `payload=${encodeURIComponent(json)}`
	const headers = senders.github({ secret, body, time: now(), id: 'form' })
	const type = { 'content-type': 'application/x-www-form-urlencoded', 'x-github-event': 'issues' }
	t.equal((await post(token, body, { ...headers, ...type })).status, 200)
	const [delivery] = (await gateway.request('GET', `${path}/forms/deliveries`)).body as unknown as { run_id: string }[]
	const run = await gateway.request('GET', `/v1/runs/${delivery?.run_id}`)
	t.ok(run.body.prompt.includes(`\n${json}\n`))
	t.match(run.body.prompt, /calls the event "issues"/)
})
