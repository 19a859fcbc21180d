/** Webhooks over HTTP: registration, deliveries, every reason for a refusal, rotation and deletion. */
import { createHmac, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import t from 'tap'
import type { Test } from 'tap'
import { Connection } from '../bench/connection.ts'
import { call, deliver, head, makeHook, openRaw, sign } from '../plugins/webhooks/sender.ts'
import type { Hook } from '../plugins/webhooks/sender.ts'
import { addToken } from '../support/add.ts'
import { endedRun } from '../support/ended-run.ts'
import { makeHome, startGateway } from '../support/gateway.ts'
import type { Answer, Reply, TestGateway } from '../support/gateway.ts'
import { startModelServer } from '../support/model-server.ts'
import { assertError } from '../support/error-response.ts'
import { providersAt } from '../support/providers.ts'
import { follow } from '../support/runs.ts'
import { eventually } from '../support/wait.ts'

const shared = await startGateway({ config: 'webhooks:\n  per_minute: 1000000\n' })
t.teardown(() => shared.stop())

const json = ['content-type: application/json']
const hookPath = ({ token }: Hook): string => `/v1/hooks/${token}`

async function listed(gateway: Pick<TestGateway, 'request'>, hook: Hook): Promise<Answer> {
	const { body } = await gateway.request('GET', `/v1/agents/${hook.agent}/webhooks`)
	return body.find((one: Answer) => one.slug === hook.slug)
}

async function deliveriesOf(
	gateway: Pick<TestGateway, 'request'>,
	{ path }: Hook,
	query = '?limit=500',
): Promise<Answer[]> {
	return (await gateway.request('GET', `${path}/deliveries${query}`)).body
}

async function runsOf(gateway: Pick<TestGateway, 'request'>, agent: string): Promise<Answer[]> {
	const { body } = await gateway.request('GET', `/v1/agents/${agent}/runs?limit=500`)
	return body.filter((run: Answer) => run.trigger === 'webhook')
}

/** Opens a delivery of `{}`, of which the gateway has everything but the last byte. */
async function openIncomplete(t: Test, { url }: TestGateway, { token, secret }: Hook): ReturnType<typeof openRaw> {
	const lines = [...json, 'content-length: 2', `x-signature: ${sign(secret, '{}')}`]
	const opened = await openRaw(url, head(token, ...lines), '{')
	t.teardown(() => opened.socket.destroy())
	await readsAreDone(t, url)
	return opened
}

/** Waits until the gateway has read what was sent on other connections: it answers a later connection after that. */
async function readsAreDone(t: Test, url: string): Promise<void> {
	const later = await openRaw(url, head('nobody', 'content-length: 0'))
	t.equal((await later.answer).status, 404)
	later.socket.destroy()
}

void t.test('an agent registers a webhook, and a delivery starts a run', async (t) => {
	const model = await startModelServer()
	t.teardown(() => model.stop())
	const home = makeHome(
		{ config: `webhooks:\n  public_url: https://gateway.example.com/base/\n${providersAt({ main: model.url })}` },
		t,
	)
	let gateway = await startGateway({ home })
	let stopped = false
	t.teardown(() => (stopped ? undefined : gateway.stop()))
	const ada = await follow(t, gateway, 'ada')
	const callTool = async (prompt: string, name: string, slug: unknown): Promise<Answer> => {
		model.on(prompt, { tools: [{ name, arguments: { slug } }] }, 'Done.')
		await ada.complete(prompt)
		const last = model.requests(prompt).at(-1)
		return JSON.parse(String(last?.messages.findLast((message) => message.role === 'tool')?.content))
	}

	const made = await callTool('register one', 'webhook_register', 'git-hub_1')
	t.strictSame(Object.keys(made), ['slug', 'url', 'token', 'secret'])
	t.match(made, { slug: 'git-hub_1', token: /^[\w-]{43}$/, secret: /^[0-9a-f]{64}$/ })
	t.equal(made.url, `https://gateway.example.com/base/v1/hooks/${made.token}`)
	const registered = await ada.stream.waitFor('webhook.registered')
	t.strictSame(registered.payload, { slug: 'git-hub_1' })
	const hook: Hook = { ...made, agent: 'ada', path: '/v1/agents/ada/webhooks/git-hub_1' }
	const { created_at, ...rest } = await listed(gateway, hook)
	t.strictSame(rest, {
		slug: 'git-hub_1',
		scheme: 'svc',
		token: made.token,
		deliver: 'none',
		last_delivery: null,
		delivery_count: 0,
	})
	t.equal(new Date(created_at).toISOString(), created_at)

	model.on('has received a delivery', 'I have seen it.')
	const payload = `{ "zen" : "Grüße 😀 \`\`\` /tool x {}",\n "n": 1.0 }`
	const { status, body } = await deliver(gateway, hook, payload)
	t.equal(status, 200)
	t.strictSame(Object.keys(body), ['status', 'delivery_id'])
	t.equal(body.status, 'accepted')
	const accepted = await ada.stream.waitFor('webhook.accepted')
	t.strictSame(accepted.payload, {
		slug: 'git-hub_1',
		delivery_id: body.delivery_id,
		run_id: accepted.payload.run_id,
		actor: { kind: 'webhook', id: 'git-hub_1' },
	})
	const run_id = String(accepted.payload.run_id)
	t.match(accepted, { run_id, sequence: 1 }, 'the first event of its run')
	const audit = await gateway.request('GET', `/v1/audit?event_type=webhook.accepted&run_id=${run_id}`)
	t.strictSame(audit.body.events, [accepted])
	t.equal((await ada.ended(run_id)).event_type, 'run.completed')
	const run = await ada.read(run_id)
	t.match(run, { agent: 'ada', trigger: 'webhook', conversation: `webhook:${body.delivery_id}` })
	t.equal(run.answer, 'I have seen it.')
	const read = await ada.call(`history?conversation=${encodeURIComponent(run.conversation)}`)
	t.match(read.body, [
		{ role: 'user', content: run.prompt },
		{ role: 'assistant', content: 'I have seen it.' },
	])
	t.ok(run.prompt.includes(payload), 'the payload is complete')
	t.match(run.prompt, /webhook "git-hub_1"/)
	t.ok(String(model.requests('has received a delivery')[0]?.messages.at(-1)?.content).includes(payload))
	const [delivery] = await deliveriesOf(gateway, hook)
	const { received_at, ...logged } = delivery
	t.strictSame(logged, {
		error: null,
		delivery_id: body.delivery_id,
		webhook_slug: 'git-hub_1',
		source_ip: '127.0.0.1',
		signature_valid: true,
		run_id,
		status_code: 200,
	})
	t.match(await listed(gateway, hook), { last_delivery: received_at, delivery_count: 1 })

	// Errors are reported to the model.
	t.match(await callTool('the same again', 'webhook_register', 'git-hub_1'), {
		error: { code: 'already_exists', message: /webhook_rotate/ },
	})
	for (const [n, slug] of ['', 'Upper', 'a b', 'x'.repeat(65), 'ä', 7].entries())
		t.match(await callTool(`wrong ${n}`, 'webhook_register', slug), {
			error: { code: 'invalid_arguments', message: /slug/ },
		})
	t.match(await callTool('one that is not there', 'webhook_rotate', 'other'), {
		error: { code: 'not_found', message: /git-hub_1/ },
	})

	const rotated = await callTool('rotate it', 'webhook_rotate', 'git-hub_1')
	t.not(rotated.token, made.token)
	t.not(rotated.secret, made.secret)
	assertError(t, await deliver(gateway, hook, {}), { status: 404, code: 'not_found' })
	assertError(t, await deliver(gateway, { ...rotated, secret: made.secret }, {}), {
		status: 401,
		code: 'signature_invalid',
	})
	t.equal((await deliver(gateway, rotated, {})).status, 200)
	t.match(await listed(gateway, hook), { token: rotated.token, created_at, delivery_count: 2 })

	// The model got each secret once. They are redacted everywhere else, also if the model repeats them.
	model.on('say it', `The secret is ${rotated.secret}, and was ${made.secret}.`)
	model.on('and again', 'Well.')
	await ada.complete('say it')
	await ada.complete('and again')
	await gateway.stop()
	gateway = await startGateway({ home })
	const later = await follow(t, gateway, 'ada')
	model.on('tell me once more', `It is ${rotated.secret}.`)
	await later.complete('tell me once more')
	const shown = [ada.stream.events, later.stream.events, (await later.call('history')).body]
	shown.push(
		(await later.call('runs?limit=500')).body,
		(await later.call('webhooks')).body,
		await deliveriesOf(gateway, hook),
	)
	shown.push((await gateway.request('GET', '/v1/audit?limit=500')).body.events)
	await gateway.stop()
	stopped = true
	const secrets = [made.secret, rotated.secret] as string[]
	for (const secret of secrets) {
		t.notOk(JSON.stringify(shown).includes(secret.slice(0, 24)), 'not in events, records or responses')
		const requests = model.mock.getRequests().filter(({ body }) => JSON.stringify(body).includes(secret.slice(0, 24)))
		t.equal(requests.length, 1, 'only in the request with the result of the call')
		for (const file of readdirSync(home, { recursive: true, withFileTypes: true })) {
			if (file.isFile())
				t.notOk(readFileSync(join(file.parentPath, file.name)).includes(secret.slice(0, 24)), `not in ${file.name}`)
		}
	}
	t.match(JSON.stringify(shown), /It is \[redacted:webhook:git-hub_1\]\./)
})

void t.test('an invalid delivery is rejected, and recorded if its body was read', async (t) => {
	const hook = await makeHook(shared, 'strict')
	const { stream } = await follow(t, shared, 'strict')
	const body = '{"a":1}'
	const unsigned = { 'x-signature': undefined }
	type Case = [what: string, status: number, send: () => Promise<Reply<Answer>>, message: RegExp]
	const send =
		(of: string | Buffer, headers: Record<string, string | undefined> = {}) =>
		() =>
			deliver(shared, hook, of, headers)
	const signatures: Case[] = [
		['no signature', 401, send(body, unsigned), /X-Signature/],
		['an empty one', 401, send(body, { 'x-signature': '' }), /X-Signature/],
		['one of another body', 401, send(body, { 'x-signature': sign(hook.secret, '{"a":2}') }), /does not match/],
		['one with another secret', 401, send(body, { 'x-signature': sign('other', body) }), /does not match/],
		['one with the token', 401, send(body, { 'x-signature': sign(hook.token, body) }), /does not match/],
		['one without its prefix', 401, send(body, { 'x-signature': sign(hook.secret, body).slice(7) }), /sha256=/],
		[
			'one with an uppercase prefix',
			401,
			send(body, { 'x-signature': sign(hook.secret, body).toUpperCase() }),
			/sha256=/,
		],
		['a wrong second one', 401, send(body, { 'x-hub-signature-256': sign('other', body) }), /X-Hub-/],
		['none, and no body', 401, send('', unsigned), /X-Signature/],
		['none, and invalid JSON', 401, send('{', { ...unsigned, 'content-type': 'text/plain' }), /X-Signature/],
	]
	const bodies: Case[] = [
		['no body', 400, send(''), /empty/],
		['invalid JSON', 400, send('{"a":'), /not valid JSON/],
		['two JSON values', 400, send('{} {}'), /not valid JSON/],
		['invalid UTF-8', 400, send(Buffer.from([0x22, 0xff, 0x22])), /UTF-8/],
		['another type', 400, send(body, { 'content-type': 'text/plain' }), /application\/json/],
		[
			'a form',
			400,
			send(`payload=${body}`, { 'content-type': 'application/x-www-form-urlencoded' }),
			/application\/json/,
		],
		['no type', 400, send(body, { 'content-type': '' }), /application\/json/],
		['an invalid type', 400, send(body, { 'content-type': ';;' }), /application\/json/],
		['a compressed body', 400, send(body, { 'content-encoding': 'gzip' }), /compressed/],
		['an id that is too long', 400, send(body, { 'x-delivery-id': 'x'.repeat(257) }), /256/],
	]
	const recorded = [...signatures, ...bodies]
	for (const [what, status, ask, message] of recorded)
		assertError(
			t,
			await ask(),
			{ status, code: status === 401 ? 'signature_invalid' : 'invalid_request', message },
			what,
		)
	const unrecorded: [string, number, string, () => Promise<Reply<Answer>>][] = [
		['more than 1 MiB', 413, 'payload_too_large', send(`"${'x'.repeat(1024 * 1024)}"`)],
		['more than 1 MiB, unsigned', 413, 'payload_too_large', send(`"${'x'.repeat(1024 * 1024)}"`, unsigned)],
		['an invalid token', 404, 'not_found', () => deliver(shared, { ...hook, token: 'x' }, body)],
		['an unknown token', 404, 'not_found', () => deliver(shared, { ...hook, token: `${hook.token.slice(1)}_` }, body)],
		['a token with a suffix', 404, 'not_found', () => deliver(shared, { ...hook, token: `${hook.token}%00` }, body)],
		[
			'an unknown token in an invalid request',
			404,
			'not_found',
			() => deliver(shared, { token: 'x', secret: 'x' }, '', unsigned),
		],
	]
	for (const [what, status, code, ask] of unrecorded) assertError(t, await ask(), { status, code }, what)

	const kept = await deliveriesOf(shared, hook)
	t.strictSame(
		kept.map((one) => [one.status_code, one.signature_valid, one.run_id]).toReversed(),
		recorded.map(([, status]) => [status, status === 400, null]),
	)
	t.match(await listed(shared, hook), { delivery_count: 0, last_delivery: null })
	t.strictSame(await runsOf(shared, 'strict'), [])
	const violation = await stream.waitFor('security.violation', signatures.length)
	t.match(violation.payload, { reason: 'webhook_signature', slug: 'hook', source_ip: '127.0.0.1', message: /X-Sig/ })
	const rejected = await stream.waitFor('webhook.rejected', recorded.length + 2)
	t.match(rejected.payload, { slug: 'hook', code: 'payload_too_large', delivery_id: null })
	const rejections = stream.events.filter((event) => event.event_type === 'webhook.rejected')
	t.strictSame(
		rejections.flatMap(({ payload }) => payload.delivery_id ?? []),
		kept.map((one) => one.delivery_id).toReversed(),
	)

	for (const good of ['{"a":1}', 'null', '"text"', '[]', ' 0 ', `"${'x'.repeat(1024 * 1024 - 2)}"`]) {
		const reply = await deliver(
			shared,
			hook,
			good,
			good === 'null' ? { 'x-hub-signature-256': sign(hook.secret, good) } : {},
		)
		t.equal(reply.status, 200, `any JSON value is accepted: ${good.slice(0, 10)}`)
	}
	const github = { 'x-signature': undefined, 'x-hub-signature-256': sign(hook.secret, body) }
	t.equal(
		(await deliver(shared, hook, body, { ...github, 'content-type': 'application/json; charset=utf-8' })).status,
		200,
	)
	t.equal((await runsOf(shared, 'strict')).length, 7)
	t.match(await listed(shared, hook), { delivery_count: 7 })
	for (const [method, path] of [
		['GET', `/v1/hooks/${hook.token}`],
		['PUT', `/v1/hooks/${hook.token}`],
		['POST', '/v1/hooks/'],
		['POST', `/v1/hooks/${hook.token}/x`],
	] as const)
		t.equal((await shared.request(method, path)).status, 404, `${method} ${path.slice(0, 12)}`)
})

void t.test('malformed requests', async (t) => {
	const hook = await makeHook(shared, 'raw')
	const { token, secret } = hook
	const body = '{"a":1}'
	const raw = async (lines: string[], ...parts: (string | Buffer)[]) => {
		const opened = await openRaw(shared.url, head(token, ...json, ...lines), ...parts)
		t.teardown(() => opened.socket.destroy())
		return opened
	}
	const signed = (of: string): string => `x-signature: ${sign(secret, of)}`
	const length = `content-length: ${body.length}`

	await t.test('a repeated signature', async (t) => {
		const twice = await raw([length, signed(body), signed(body)], body)
		t.match(await twice.answer, { status: 401, body: { code: 'signature_invalid' } })
		const other = await raw([length, signed(body), signed('x')], body)
		t.equal((await other.answer).status, 401)
	})
	await t.test('a wrong length', async (t) => {
		// The bytes beyond the length are the next request.
		const more = await raw([`content-length: ${body.length - 1}`, signed(body.slice(0, -1))], body)
		t.match(await more.answer, { status: 400, body: { code: 'invalid_request' } })
		const huge = await raw(['content-length: 1048577', signed(body)], body)
		t.match(await huge.answer, { status: 413, headers: /connection: close/i, body: { code: 'payload_too_large' } })
		await huge.closed
		const beyond = await raw(['content-length: 99999999999999999999'], body)
		t.equal((await beyond.answer).status, 400)
		for (const lines of [
			['content-length: 7', 'content-length: 8'],
			['content-length: -1'],
			['content-length: 7', 'transfer-encoding: chunked'],
		])
			t.equal((await (await raw([...lines, signed(body)], body)).answer).status, 400, lines.join())
	})
	await t.test('endless chunks', async (t) => {
		const chunk = `10000\r\n${'x'.repeat(0x10000)}\r\n`
		const above = await raw(['transfer-encoding: chunked', signed(body)], chunk.repeat(17))
		t.match(await above.answer, { status: 413, headers: /connection: close/i, body: { code: 'payload_too_large' } })
		await above.closed
		const { socket, answer, closed } = await raw(['transfer-encoding: chunked', signed(body)])
		let sent = 0
		while (!socket.destroyed && sent < 1024) {
			sent++
			await new Promise<void>((resolve) => socket.write(chunk, () => resolve()))
		}
		t.ok(sent < 1024, `the gateway stopped reading (${sent} chunks)`)
		await closed
		// A client that is writing when the connection closes may lose the answer.
		const answered = await answer.catch(() => null)
		if (answered) t.equal(answered.status, 413)
	})
	await t.test('valid chunks', async (t) => {
		const { socket, answer } = await raw(['transfer-encoding: chunked', signed(body)], '3\r\n{"a\r\n', '4\r\n":1}\r\n')
		socket.write('0\r\n\r\n')
		t.equal((await answer).status, 200)
	})
	await t.test('an unknown token, and a body that never arrives', async (t) => {
		const { answer } = await openRaw(shared.url, head('nobody', 'content-length: 1000'))
		t.match(await answer, { status: 404, headers: /connection: close/i })
	})
	await t.test('a sender that disconnects', async (t) => {
		const before = (await deliveriesOf(shared, hook)).length
		const { socket, closed } = await raw([length, signed(body)], body.slice(0, 3))
		socket.end()
		await closed
		t.equal((await deliveriesOf(shared, hook)).length, before, 'its delivery is not recorded')
		t.equal((await deliver(shared, hook, body)).status, 200)
	})
})

void t.test('200 wrong signatures on persistent connections are rejected', async (t) => {
	const hook = await makeHook(shared, 'hundreds')
	const body = JSON.stringify({ n: 1, text: 'x'.repeat(200) })
	const right = sign(hook.secret, body)
	const attempts = Array.from({ length: 200 }, (_, n) => {
		const at = 7 + (n % 64)
		const digit = right[at] === '0' ? '1' : '0'
		const place = n % body.length
		const flipped = body.slice(0, place) + (body[place] === 'y' ? 'z' : 'y') + body.slice(place + 1)
		const kinds: [string, string][] = [
			[right.slice(0, at) + digit + right.slice(at + 1), body],
			[right, flipped],
			[sign(`${hook.secret.slice(0, n % 64)}x${hook.secret.slice((n % 64) + 1)}`, body), body],
			[right.slice(0, n % right.length), body],
			[`sha256=${randomBytes(32).toString('hex')}`, body],
		]
		return kinds[n % kinds.length] as [string, string]
	})
	const statuses: number[] = []
	const left = attempts.values()
	const sender = async (): Promise<void> => {
		const connection = await Connection.open(shared.url)
		for (const [signature, of] of left)
			statuses.push((await connection.sendText('POST', hookPath(hook), of, { 'x-signature': signature })).status)
		connection.close()
	}
	await Promise.all(Array.from({ length: 8 }, sender))
	t.equal(statuses.length, 200)
	t.strictSame(new Set(statuses), new Set([401]))
	t.equal((await deliveriesOf(shared, hook)).length, 200)
	t.strictSame(await runsOf(shared, 'hundreds'), [])
	t.equal((await deliver(shared, hook, body)).status, 200)
})

void t.test('deliveries in the form that GitHub sends are accepted', async (t) => {
	const hook = await makeHook(shared, 'octo', 'github')
	const send = (event: string, payload: object, guid: string): Promise<Reply<Answer>> => {
		const body = JSON.stringify(payload)
		return deliver(shared, hook, body, {
			accept: '*/*',
			'user-agent': 'GitHub-Hookshot/044aadd',
			'x-signature': undefined,
			'x-github-delivery': guid,
			'x-github-event': event,
			'x-github-hook-id': '292430182',
			'x-github-hook-installation-target-type': 'repository',
			'x-hub-signature': `sha1=${createHmac('sha1', hook.secret).update(body).digest('hex')}`,
			'x-hub-signature-256': sign(hook.secret, body),
		})
	}
	const ping = await send(
		'ping',
		{ zen: 'Keep it logically awesome.', hook_id: 292430182 },
		'72d3162e-cc78-11e3-81ab-4c9367dc0958',
	)
	t.equal(ping.status, 200)
	const push = await send('push', { ref: 'refs/heads/main', commits: [] }, '72d3162e-cc78-11e3-81ab-4c9367dc0959')
	const again = await send('push', { ref: 'refs/heads/main', commits: [] }, '72d3162e-cc78-11e3-81ab-4c9367dc0959')
	t.strictSame(again.body, push.body)
	const runs = await runsOf(shared, 'octo')
	t.equal(runs.length, 2)
	t.match(runs[0].prompt, /event "push"[^]*refs\/heads\/main/)
	t.match(runs[1].prompt, /event "ping"[^]*logically awesome/)
})

void t.test('a repeated delivery starts no second run', async (t) => {
	const hook = await makeHook(shared, 'twice')
	const other = await makeHook(shared, 'twice', 'other')
	const forged = await deliver(shared, hook, {}, { 'x-delivery-id': 'one', 'x-signature': 'sha256=0' })
	t.equal(forged.status, 401, 'an unsigned id is not remembered')
	t.equal((await deliver(shared, hook, '{', { 'x-delivery-id': 'one' })).status, 400)
	const replies = await Promise.all(
		Array.from({ length: 12 }, (_, n) => deliver(shared, hook, { n }, { 'x-delivery-id': 'one' })),
	)
	t.strictSame(new Set(replies.map(({ status }) => status)), new Set([200]))
	const ids = new Set(replies.map(({ body }) => body.delivery_id))
	t.equal(ids.size, 1)
	t.match((await deliver(shared, hook, { n: 12 }, { 'webhook-id': 'one' })).body, { delivery_id: [...ids][0] })
	t.match(await listed(shared, hook), { delivery_count: 1 })
	t.equal((await runsOf(shared, 'twice')).length, 1)

	t.notOk(ids.has((await deliver(shared, hook, {}, { 'x-delivery-id': 'two' })).body.delivery_id))
	t.notOk(
		ids.has((await deliver(shared, other, {}, { 'x-delivery-id': 'one' })).body.delivery_id),
		'the same id at another webhook is another delivery',
	)
	for (let n = 0; n < 2; n++) t.equal((await deliver(shared, hook, {}, { 'x-delivery-id': '' })).status, 200)
	t.match(await listed(shared, hook), { delivery_count: 4 }, 'without an id each delivery is a new one')
	t.equal((await runsOf(shared, 'twice')).length, 5)
	const { body } = await shared.request('POST', `${hook.path}/rotate`)
	const renewed = await deliver(shared, body, {}, { 'x-delivery-id': 'one' })
	t.ok(ids.has(renewed.body.delivery_id), 'an id is remembered after a rotation')
})

void t.test('concurrent deliveries are all counted', async (t) => {
	const hook = await makeHook(shared, 'counter')
	const count = 60
	let left = count
	const sender = async (): Promise<void> => {
		const connection = await Connection.open(shared.url)
		for (let n = left--; n > 0; n = left--) {
			const signature = sign(hook.secret, String(n))
			const reply = await connection.sendText('POST', hookPath(hook), String(n), { 'x-signature': signature })
			t.equal(reply.status, 200)
		}
		connection.close()
	}
	await Promise.all(Array.from({ length: 12 }, sender))
	const kept = await deliveriesOf(shared, hook)
	t.equal(kept.length, count)
	t.match(await listed(shared, hook), {
		delivery_count: count,
		last_delivery: kept.reduce((last, { received_at }) => (received_at > last ? received_at : last), ''),
	})
	const runs = new Set((await runsOf(shared, 'counter')).map(({ run_id }) => run_id))
	t.equal(runs.size, count)
	t.ok(kept.every(({ run_id }) => runs.has(run_id)))

	const paged: Answer[] = []
	for (let before = ''; ;) {
		const page = await deliveriesOf(shared, hook, `?limit=25${before && `&before=${before}`}`)
		if (page.length === 0) break
		paged.push(...page)
		before = page.at(-1).delivery_id
	}
	t.strictSame(paged, kept)
	for (const query of ['?limit=0', '?limit=501', '?before=x', '?x=1'])
		t.equal((await shared.request('GET', `${hook.path}/deliveries${query}`)).status, 400, query)
})

void t.test('a burst is queued, up to the limit per minute', async (t) => {
	const gateway = await startGateway({ config: 'webhooks:\n  per_minute: 110\n' })
	t.teardown(() => gateway.stop())
	const hook = await makeHook(gateway, 'burst')
	const statuses = async (answers: Promise<{ status: number }>[]): Promise<Record<string, number>> => {
		const counts: Record<string, number> = {}
		for (const { status } of await Promise.all(answers)) counts[status] = (counts[status] ?? 0) + 1
		return counts
	}
	const many = Array.from({ length: 50 }, (_, n) => n)
	t.strictSame(await statuses(many.map((n) => deliver(gateway, hook, { n }))), { 200: 50 })

	// Each body is sent only once all requests are waiting for theirs. Which bodies count as slow depends on the time, and which one is
	// furthest behind on how the system splits it. Neither may depend on this machine, so the clock stands still, and each body is sent
	// in one piece.
	const at = performance.now()
	t.intercept(performance, 'now', { value: () => at })
	const bodies = many.map((n) => JSON.stringify({ n, text: 'x'.repeat(40_000) }))
	const signed = (body: string): string[] => [
		...json,
		`content-length: ${body.length}`,
		`x-signature: ${sign(hook.secret, body)}`,
	]
	const sent = await Promise.all(bodies.map((body) => openRaw(gateway.url, head(hook.token, ...signed(body)))))
	t.teardown(() => sent.forEach(({ socket }) => socket.destroy()))
	await readsAreDone(t, gateway.url)
	for (const [at, { socket }] of sent.entries()) socket.write(bodies[at] ?? '')
	t.strictSame(await statuses(sent.map(({ answer }) => answer)), { 200: 50 })

	t.strictSame(await statuses(many.map((n) => deliver(gateway, hook, { n }))), { 200: 10, 429: 40 })
	t.equal((await listed(gateway, hook)).delivery_count, 110)
})

void t.test('limits of size, rate, concurrency and number apply, with Retry-After', async (t) => {
	const config =
		'webhooks:\n  per_minute: 9\n  max_concurrent: 3\n  max_concurrent_per_webhook: 2\n  max_body_kib: 1\n  max_per_agent: 4\n'
	const home = makeHome({ config }, t)
	const gateway = await startGateway({ home })
	let running: TestGateway | null = gateway
	t.teardown(() => running?.stop())
	const busy = await makeHook(gateway, 'busy')
	const other = await makeHook(gateway, 'busy', 'other')
	const third = await makeHook(gateway, 'busy', 'third')
	const first = await openIncomplete(t, gateway, busy)
	const held = [first, await openIncomplete(t, gateway, busy), await openIncomplete(t, gateway, other)]
	for (const hook of [busy, other, third])
		t.equal((await deliver(gateway, hook, {})).status, 200, 'slow bodies block no other delivery')
	// It is queued, and the first slow body is aborted for it.
	const next = await openRaw(gateway.url, head(busy.token, ...json, 'content-length: 2'), '{')
	t.teardown(() => next.socket.destroy())
	t.match(await first.answer, { status: 408, headers: /connection: close/i, body: { message: /too slowly/ } })
	await first.closed
	for (const { socket, answer } of held.slice(1)) {
		socket.write('}')
		t.equal((await answer).status, 200)
	}
	const fourth = await makeHook(gateway, 'busy', 'fourth')
	assertError(t, await deliver(gateway, fourth, 'x'.repeat(1025)), {
		status: 413,
		code: 'payload_too_large',
		message: /1024 bytes/,
	})
	for (let n = 0; n < 12; n++) await deliver(gateway, fourth, n, { 'x-signature': 'wrong' })
	for (let n = 0; n < 9; n++)
		t.equal((await deliver(gateway, fourth, n)).status, 200, 'unsigned deliveries do not count')
	const late = await deliver(gateway, fourth, {})
	assertError(t, late, { status: 429, code: 'rate_limited', message: /9 deliveries a minute/ })
	const wait = Number(late.headers.get('retry-after'))
	t.ok(wait > 0 && wait <= 60)
	t.match(await call(gateway, 'busy', 'webhook.register', { slug: 'fifth' }), /max_per_agent/)

	const scan = await openRaw(gateway.url)
	let answers = ''
	scan.socket.on('data', (text: string) => (answers += text))
	const answered = (status: number): number => answers.split(`HTTP/1.1 ${status}`).length - 1
	// Fewer than the 64 requests that a connection may pipeline.
	for (let sent = 62; sent <= 310; sent += 62) {
		scan.socket.write('POST /v1/hooks/wrong HTTP/1.1\r\nhost: localhost\r\n\r\n'.repeat(62))
		while (answered(404) + answered(429) < sent) await once(scan.socket, 'data')
	}
	scan.socket.destroy()
	t.equal(answered(404) + held.length, 300, 'including the earlier requests with an unknown token')
	t.equal(answered(429), 10 + held.length)
	t.equal((await deliver(gateway, other, {})).status, 200, 'a valid token still works')

	// With another key than the vault's no secret can be decrypted, and no delivery is accepted.
	const kept = await deliveriesOf(gateway, other)
	next.socket.destroy() // a gateway that stops waits for bodies
	await gateway.stop()
	running = null
	const locked = (running = await startGateway({ home, env: { SVC_VAULT_KEY: randomBytes(32).toString('hex') } }))
	assertError(t, await deliver(locked, other, {}), { status: 503, code: 'vault_locked', message: /^(?!.*SVC_).*later/ })
	assertError(t, await deliver(locked, other, {}, { 'x-signature': undefined }), { status: 503, code: 'vault_locked' })
	t.strictSame(await deliveriesOf(locked, other), kept)
})

/** After a refusal, since of requests with unknown tokens the gateway answers only 300 a minute with 404. */
const REFUSED_PAUSE_MS = 10

/** Sends deliveries until `stop`. `sent`: the start and the status of each. */
function keepSending(hook: Hook, senders: number) {
	const sent: { at: number; status: number }[] = []
	let stopped = false
	const sender = async (): Promise<void> => {
		while (!stopped) {
			const at = performance.now()
			const { status } = await deliver(shared, hook, {})
			sent.push({ at, status })
			if (status !== 200) await pause(REFUSED_PAUSE_MS)
		}
	}
	const work = Promise.all(Array.from({ length: senders }, sender))
	return {
		sent,
		accepted: (count: number) => eventually(() => sent.filter(({ status }) => status === 200).length >= count),
		async stop(): Promise<void> {
			stopped = true
			await work
		},
	}
}

void t.test('rotation and deletion take effect at once, under load', async (t) => {
	const hook = await makeHook(shared, 'moving')
	const old = keepSending(hook, 6)
	await old.accepted(10)
	const { body: next } = await shared.request('POST', `${hook.path}/rotate`)
	const rotated = performance.now()
	await eventually(() => old.sent.some(({ at }) => at > rotated))
	await old.stop()
	const fresh = keepSending({ ...hook, ...next }, 6)
	await fresh.accepted(10)
	const late = old.sent.filter(({ at }) => at > rotated)
	t.ok(late.length > 0 && late.every(({ status }) => status === 404), `${late.length} deliveries after the rotation`)
	t.ok(
		old.sent.every(({ status }) => status === 200 || status === 404),
		'no other status',
	)

	t.equal((await shared.request('DELETE', hook.path)).status, 204)
	const deleted = performance.now()
	await eventually(() => fresh.sent.filter(({ at }) => at > deleted).length >= 10)
	await fresh.stop()
	t.ok(fresh.sent.filter(({ at }) => at > deleted).every(({ status }) => status === 404))
	t.ok(fresh.sent.every(({ status }) => status === 200 || status === 404))
	const accepted = [...old.sent, ...fresh.sent].filter(({ status }) => status === 200).length
	t.equal((await runsOf(shared, 'moving')).length, accepted, 'each accepted delivery has its run')
	for (const path of [hook.path, `${hook.path}/rotate`, `${hook.path}/deliveries`])
		assertError(
			t,
			await shared.request(path === hook.path ? 'DELETE' : path.endsWith('rotate') ? 'POST' : 'GET', path),
			{ status: 404, code: 'not_found', message: /it has none/ },
			path,
		)
	t.strictSame((await shared.request('GET', '/v1/agents/moving/webhooks')).body, [])
	const renewed = await makeHook(shared, 'moving')
	t.strictSame(await deliveriesOf(shared, renewed), [])
	t.match(await listed(shared, renewed), { delivery_count: 0, last_delivery: null })
})

void t.test('deleting an agent deletes its webhooks, and a new agent with that name has none', async (t) => {
	const hook = await makeHook(shared, 'mortal')
	t.equal((await deliver(shared, hook, {}, { 'x-delivery-id': 'one' })).status, 200)
	const incomplete = await openIncomplete(t, shared, hook)
	t.equal((await shared.request('DELETE', '/v1/agents/mortal')).status, 204)
	assertError(t, await deliver(shared, hook, {}), { status: 404, code: 'not_found' })
	incomplete.socket.write('}')
	t.equal((await incomplete.answer).status, 404, 'a delivery whose body was incomplete')
	assertError(t, await shared.request('GET', '/v1/agents/mortal/webhooks'), { status: 404, code: 'not_found' })
	await shared.request('POST', '/v1/agents', { body: { name: 'mortal' } })
	assertError(t, await deliver(shared, hook, {}), { status: 404, code: 'not_found' })
	t.strictSame((await shared.request('GET', '/v1/agents/mortal/webhooks')).body, [])
	t.strictSame(await runsOf(shared, 'mortal'), [])
	const renewed = await makeHook(shared, 'mortal')
	t.equal((await deliver(shared, renewed, {}, { 'x-delivery-id': 'one' })).status, 200)
	t.match(await listed(shared, renewed), { delivery_count: 1 })
})

void t.test('each route requires its scope, and a delivery requires none', async (t: Test) => {
	const hook = await makeHook(shared, 'scoped')
	const away = { 'x-forwarded-for': '192.0.2.7' }
	const [reader, writer] = [
		(await addToken(shared, ['agents:read'])).token,
		(await addToken(shared, ['agents:write'])).token,
	]
	const ask = (method: string, path: string, token: string) => shared.request(method, path, { token, headers: away })
	t.equal((await ask('GET', '/v1/agents/scoped/webhooks', reader)).status, 200)
	t.equal((await ask('GET', `${hook.path}/deliveries`, reader)).status, 200)
	for (const [method, path, token] of [
		['GET', '/v1/agents/scoped/webhooks', writer],
		['GET', `${hook.path}/deliveries`, writer],
		['POST', `${hook.path}/rotate`, reader],
		['POST', hook.path.replace(/\/hook$/, ''), reader],
		['DELETE', hook.path, reader],
	] as const)
		t.equal((await ask(method, path, token)).status, 403, `${method} ${path}`)
	t.equal((await deliver(shared, hook, {}, away)).status, 200, 'a remote delivery needs no token of the gateway')
	t.match((await deliveriesOf(shared, hook))[0], { source_ip: '127.0.0.1' }, 'the address is not taken from a header')
	const rotated = await ask('POST', `${hook.path}/rotate`, writer)
	t.match(rotated, { status: 200, body: { slug: 'hook', secret: /^[0-9a-f]{64}$/ } })
	t.equal(rotated.body.url, `${shared.url}/v1/hooks/${rotated.body.token}`)
	t.equal((await deliver(shared, rotated.body, {})).status, 200)
	assertError(t, await shared.request('POST', `${hook.path}/rotate`, { body: { slug: 'x' } }), {
		status: 400,
		code: 'invalid_request',
	})
	for (const path of [
		'/v1/agents/nobody/webhooks',
		'/v1/agents/nobody/webhooks/x/deliveries',
		'/v1/agents/scoped/webhooks/nothing/deliveries',
	])
		assertError(t, await shared.request('GET', path), { status: 404, code: 'not_found' }, path)
	t.equal((await ask('DELETE', hook.path, writer)).status, 204)
})

void t.test('instructions reach the model with each delivery, separate from its payload', async (t) => {
	await shared.request('POST', '/v1/agents', { body: { name: 'told' } })
	const path = '/v1/agents/told/webhooks'
	const { body: hook } = await shared.request('POST', path, {
		body: { slug: 'alerts', instructions: 'Say which disk is full.' },
	})
	t.match((await shared.request('GET', path)).body, [{ slug: 'alerts', instructions: 'Say which disk is full.' }])
	const delivery = await deliver(shared, { ...hook, agent: 'told', path: `${path}/alerts` }, { disk: 'sda' })
	t.equal(delivery.status, 200)
	const [run] = (await shared.request('GET', '/v1/agents/told/runs')).body
	t.match(run.prompt, /Say which disk is full\.[^]*data from outside[^]*"disk"/)
})

void t.test('a person registers a webhook, whose secret is returned once', async (t) => {
	await shared.request('POST', '/v1/agents', { body: { name: 'handy' } })
	const register = (body: unknown) => shared.request('POST', '/v1/agents/handy/webhooks', { body })
	const { status, body } = await register({ slug: 'by-hand' })
	t.equal(status, 201)
	t.strictSame(Object.keys(body), ['slug', 'url', 'token', 'secret'])
	t.equal(body.url, `${shared.url}/v1/hooks/${body.token}`)
	t.equal(
		(await deliver(shared, { ...body, agent: 'handy', path: '/v1/agents/handy/webhooks/by-hand' }, {})).status,
		200,
	)
	t.notMatch(JSON.stringify((await shared.request('GET', '/v1/agents/handy/webhooks')).body), body.secret)
	t.notMatch(JSON.stringify((await shared.request('GET', '/v1/audit?agent_id=handy')).body), body.secret)

	assertError(t, await register({ slug: 'by-hand' }), { status: 409, code: 'already_exists' })
	for (const wrong of [{}, { slug: '' }, { slug: 'Aa' }, { slug: 'a b' }, { slug: 'x'.repeat(65) }, { slug: 7 }])
		assertError(t, await register(wrong), { status: 400, code: 'invalid_request' }, JSON.stringify(wrong))
	for (const instructions of ['', 7, 'x'.repeat(10 * 1024 + 1), 'ü'.repeat(5 * 1024 + 1)])
		assertError(t, await register({ slug: 'told', instructions }), { status: 400, code: 'invalid_request' })
	assertError(t, await register({ slug: 'ok', secret: 'mine' }), { status: 400, code: 'invalid_request' })
	const nobody = await shared.request('POST', '/v1/agents/nobody/webhooks', { body: { slug: 'x' } })
	assertError(t, nobody, { status: 404, code: 'not_found' })
})

void t.test('a payload of the maximum size reaches the run', async (t) => {
	const hook = await makeHook(shared, 'large')
	const { stream } = await follow(t, shared, 'large')
	const frame = JSON.stringify({ text: '', end: '😀' })
	const payload = frame.replace('""', `"${'x'.repeat(1024 * 1024 - Buffer.byteLength(frame))}"`)
	const { status, body } = await deliver(shared, hook, payload)
	t.equal(status, 200)
	const { payload: accepted } = await stream.waitFor('webhook.accepted')
	t.equal(accepted.delivery_id, body.delivery_id)
	const run = await endedRun(shared.url, String(accepted.run_id))
	t.match(run, { status: 'completed' })
	t.ok(run.prompt.includes(payload))
	const message = await stream.waitFor(
		(event) => event.event_type === 'message.user' && event.run_id === accepted.run_id,
	)
	t.ok(String(message.payload.content).includes(payload))
	t.ok((await runsOf(shared, 'large'))[0].prompt.includes(payload))
})
