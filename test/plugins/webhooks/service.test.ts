/** Registration, rotation and removal of webhooks: repeated calls of a run, concurrency, expiry. */
import { mkdtempSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { Fault, isFault } from '../../../core/errors.ts'
import { newId } from '../../../core/util/ids.ts'
import { keys } from '../../../plugins/webhooks/records.ts'
import type { AcceptedRecord } from '../../../plugins/webhooks/records.ts'
import { deliveriesOf, rejectionsOf } from '../../../plugins/webhooks/delivery-log.ts'
import { makePlace } from '../vault/open.ts'
import { open } from './open.ts'
import type { Opened } from './open.ts'

const DAY_MS = 24 * 3_600_000
const newPlace = () => makePlace(mkdtempSync(join(t.testdir(), 'home-')))

async function pointers({ store }: Opened): Promise<number> {
	let count = 0
	for await (const _ of store.list(keys.pointers())) count++
	return count
}

void t.test('a repeated call returns the same token and secret', async (t) => {
	const place = newPlace()
	const first = await open(place)
	const ada = await first.agent('ada')
	const { webhook } = await first.webhooks.register(ada, { slug: 'deploy' }, first.call('run:1'))
	t.match(webhook, { slug: 'deploy', token: /^[\w-]{43}$/, secret: /^[0-9a-f]{64}$/ })
	t.equal(webhook.url, `https://gateway.example.com/v1/hooks/${webhook.token}`)
	t.strictSame((await first.webhooks.register(ada, { slug: 'deploy' }, first.call('run:1'))).webhook, webhook)

	// The gateway died before the run had the result.
	const second = await open(place)
	t.strictSame((await second.webhooks.register(ada, { slug: 'deploy' }, second.call('run:1'))).webhook, webhook)
	await t.rejects(second.webhooks.register(ada, { slug: 'deploy' }, second.call('run:2')), {
		code: 'already_exists',
		message: /webhook\.rotate/,
	})
	await t.rejects(second.webhooks.register(ada, { slug: 'deploy' }), { code: 'already_exists' })

	const rotated = (await second.webhooks.rotate(ada, 'deploy', second.call('run:3'))).webhook
	t.not(rotated.token, webhook.token)
	t.not(rotated.secret, webhook.secret)
	const third = await open(place)
	t.strictSame((await third.webhooks.rotate(ada, 'deploy', third.call('run:3'))).webhook, rotated)
	t.strictSame(await third.webhooks.list(ada).then((list) => list.map(({ token }) => token)), [rotated.token])
	const later = (await third.webhooks.rotate(ada, 'deploy', third.call('run:4'))).webhook
	t.not(later.token, rotated.token)
	await t.rejects(third.webhooks.register(ada, { slug: 'deploy' }, third.call('run:1')), { code: 'already_exists' })
	await third.tidy(Date.now() + DAY_MS)
	t.equal(await pointers(third), 1)
	t.equal((await third.webhooks.list(ada)).length, 1)
	t.strictSame(
		third.events.map(({ event_type, payload }) => [event_type, payload]),
		[
			['webhook.rotated', { slug: 'deploy' }],
			['webhook.rotated', { slug: 'deploy' }],
		],
	)
})

void t.test('a registration that fails does not count towards the limit', async (t) => {
	const opened = await open(newPlace())
	const ada = await opened.agent('ada')
	const { put } = opened.store
	opened.store.put = () => Promise.reject(new Fault('storage_full', 'the disk is full'))
	for (let n = 0; n < 10_000; n++)
		await opened.webhooks.register(ada, { slug: 'deploy' }).catch((error: unknown) => {
			if (!isFault(error, 'storage_full')) throw error
		})
	opened.store.put = put
	t.match(await opened.webhooks.register(ada, { slug: 'deploy' }), { webhook: { slug: 'deploy' } })
})

void t.test('a secret that a person sets is not shown to the agent that registered the webhook', async (t) => {
	const opened = await open(newPlace())
	const ada = await opened.agent('ada')
	await opened.webhooks.register(ada, { slug: 'paid', scheme: 'stripe' }, opened.call('run:1'))
	const [before] = await opened.webhooks.list(ada)
	const secret = 'whsec_of_the_sender_alone'
	await opened.webhooks.setSecret(ada, 'paid', secret)
	await t.rejects(opened.webhooks.register(ada, { slug: 'paid' }, opened.call('run:1')), { code: 'already_exists' })
	t.strictSame(await opened.webhooks.list(ada), [before], 'the address stays')
	t.notMatch(opened.redactor.of([ada]).text(`It is ${secret}.`, 'record'), secret)
	await t.rejects(opened.webhooks.setSecret(ada, 'other', secret), { code: 'not_found' })
})

void t.test('the limit holds for concurrent calls, and a removal makes room', async (t) => {
	const opened = await open(newPlace())
	const ada = await opened.agent('ada')
	const slugs = Array.from({ length: 12 }, (_, n) => `s${n % 6}`)
	const outcomes = await Promise.allSettled(slugs.map((slug) => opened.webhooks.register(ada, { slug })))
	const made = outcomes.filter(({ status }) => status === 'fulfilled')
	t.equal(made.length, 3)
	const codes = outcomes.flatMap((one) => (one.status === 'rejected' ? [one.reason.code] : []))
	t.ok(
		codes.every((code) => ['conflict', 'already_exists'].includes(code)),
		codes.join(),
	)
	const list = await opened.webhooks.list(ada)
	t.equal(new Set(list.map(({ slug }) => slug)).size, 3)
	t.equal(await pointers(opened), 3, 'failed registrations leave nothing')
	await t.rejects(opened.webhooks.register(ada, { slug: 'more' }), { code: 'conflict', message: /max_per_agent/ })
	await opened.webhooks.remove(ada, list[0]?.slug ?? '')
	await opened.webhooks.register(ada, { slug: 'more' })
	await t.rejects(opened.webhooks.register(ada, { slug: 'another' }), { code: 'conflict' })
	await opened.webhooks.register(await opened.agent('eve'), { slug: 'another' })

	const same = await Promise.allSettled(
		Array.from({ length: 8 }, (_, n) => opened.webhooks.rotate(ada, 'more', opened.call(`run:${n}`))),
	)
	t.ok(same.every(({ status }) => status === 'fulfilled'))
	await opened.tidy(Date.now() + DAY_MS)
	t.equal(await pointers(opened), 4)
	for (const slug of ['', 'A', 'a b', 'a.b', 'ä', '../x', 'a'.repeat(65)])
		await t.rejects(opened.webhooks.register(ada, { slug }), { code: 'invalid_request', message: /1 to 64 of a-z/ })
	await t.rejects(opened.webhooks.rotate(ada, 'nothing'), { code: 'not_found', message: /it has .*more/ })
	await t.rejects(opened.webhooks.remove(ada, 'no\0thing'), { code: 'not_found' })
})

void t.test('each secret is redacted in what its agent writes: at once, and after a restart', async (t) => {
	const place = newPlace()
	const opened = await open(place)
	const ada = await opened.agent('ada')
	const { webhook, secret_id } = await opened.webhooks.register(ada, { slug: 'deploy' })
	const redacted = ({ redactor }: Opened, text: string, except?: Set<string>) =>
		redactor.of([{ agent: 'ada' }]).text(text, 'event', except)
	t.equal(redacted(opened, `it is ${webhook.secret}!`), 'it is [redacted:webhook:deploy]!')
	t.equal(redacted(opened, webhook.secret, new Set([secret_id])), webhook.secret)
	const rotated = (await opened.webhooks.rotate(ada, 'deploy')).webhook
	t.equal(
		redacted(opened, `${webhook.secret} ${rotated.secret}`),
		'[redacted:webhook:deploy] [redacted:webhook:deploy]',
	)

	const again = await open(place)
	t.equal(redacted(again, rotated.secret), '[redacted:webhook:deploy]')
	t.equal(redacted(again, rotated.token), rotated.token, 'an address is not secret')
	await again.webhooks.remove(ada, 'deploy')
	t.equal(redacted(again, rotated.secret), '[redacted:webhook:deploy]', 'an agent that has read it may still write it')
	t.equal((await open(place)).redactor.of([{ agent: 'ada' }]).active, false)

	const { slug } = (await again.webhooks.register(ada, { slug: rotated.secret })).webhook
	t.equal(slug, rotated.secret, 'only its form makes a slug valid')
})

void t.test('without the vault, secrets are neither created nor read', async (t) => {
	const place = newPlace()
	const opened = await open(place)
	const ada = await opened.agent('ada')
	await opened.webhooks.register(ada, { slug: 'deploy' }, opened.call('run:1'))
	const locked = await open({ ...place, home: newPlace().home })
	await t.rejects(locked.webhooks.register(ada, { slug: 'other' }), { code: 'vault_locked' })
	await t.rejects(locked.webhooks.rotate(ada, 'deploy'), { code: 'vault_locked' })
	await t.rejects(locked.webhooks.register(ada, { slug: 'deploy' }, locked.call('run:1')), { code: 'vault_locked' })
	t.match(await locked.webhooks.list(ada), [{ slug: 'deploy' }])
	await locked.webhooks.remove(ada, 'deploy')
	t.strictSame(await locked.webhooks.list(ada), [])
})

/** Stores an accepted delivery as the receiver does. Returns its id. */
async function accept({ store }: Opened, uid: string, id: string, at: number, seen: string): Promise<string> {
	const delivery_id = newId()
	const received_at = new Date(at).toISOString()
	const record: AcceptedRecord = {
		delivery_id,
		webhook_slug: 'deploy',
		source_ip: '::1',
		signature_valid: true,
		run_id: newId(),
		status_code: 200,
		error: null,
		received_at,
		seen,
	}
	const count = await store.get<{ count: number }>(keys.count(uid, id, 0))
	await store.put(keys.accepted(uid, id, delivery_id), record)
	await store.put(keys.seen(uid, id, seen), { delivery_id })
	await store.put(keys.count(uid, id, 0), { count: (count?.value.count ?? 0) + 1, last: received_at })
	return delivery_id
}

async function idOf({ store }: Opened, uid: string, slug: string): Promise<string> {
	return (await store.get<{ id: string }>(keys.webhook(uid, slug)))?.value.id ?? ''
}

void t.test("old deliveries are deleted with the sender's ids; counts stay", async (t) => {
	const opened = await open(newPlace())
	const { store, webhooks } = opened
	const { uid } = await opened.agent('ada')
	const ada = { name: 'ada', uid }
	await webhooks.register(ada, { slug: 'deploy' })
	const id = await idOf(opened, uid, 'deploy')
	const now = Date.now()
	const reject = rejectionsOf(store)
	for (let n = 0; n < 130; n++) await accept(opened, uid, id, now - 31 * DAY_MS, `old ${n}`)
	const rejected = {
		webhook_slug: 'deploy',
		source_ip: '::1',
		signature_valid: false,
		run_id: null,
		status_code: 401,
		error: 'no',
	}
	for (const days of [31, 29])
		await reject(uid, id, {
			...rejected,
			delivery_id: newId(),
			received_at: new Date(now - days * DAY_MS).toISOString(),
		})
	const young: string[] = []
	for (let n = 0; n < 20; n++) young.push(await accept(opened, uid, id, now - 29 * DAY_MS, `young ${n}`))
	const log = () => webhooks.deliveries(ada, 'deploy', { limit: 500 })
	t.equal((await log()).length, 152)

	await opened.tidy(now)
	const left = await log()
	t.equal(left.length, 21)
	t.equal(left.filter(({ signature_valid }) => !signature_valid).length, 1)
	t.equal(await store.get(keys.seen(uid, id, 'old 0')), undefined)
	t.ok(await store.get(keys.seen(uid, id, 'young 0')))
	t.match(await webhooks.list(ada), [{ delivery_count: 150 }])

	await opened.tidy(now, 5)
	const accepted = (await log()).filter(({ signature_valid }) => signature_valid)
	t.strictSame(
		accepted.map(({ delivery_id }) => delivery_id).toReversed(),
		young.slice(-5),
		'the newest, whatever their age',
	)
	await opened.tidy(now, 5)
	t.equal((await log()).length, 6, 'these stay')
	t.match(await webhooks.list(ada), [{ delivery_count: 150 }])
})

void t.test('a removed webhook leaves nothing, and a new one with the same slug starts empty', async (t) => {
	const opened = await open(newPlace())
	const { store, webhooks } = opened
	const ada = await opened.agent('ada')
	const { uid } = ada
	await webhooks.register(ada, { slug: 'deploy' })
	const id = await idOf(opened, uid, 'deploy')
	for (let n = 0; n < 120; n++) await accept(opened, uid, id, Date.now(), `${n}`)
	await webhooks.remove(ada, 'deploy')
	await webhooks.register(ada, { slug: 'deploy' })
	t.strictSame(await webhooks.deliveries(ada, 'deploy', { limit: 10 }), [])
	t.match(await webhooks.list(ada), [{ delivery_count: 0, last_delivery: null }])

	const leftovers = async (): Promise<number> => {
		let count = 0
		for await (const { key } of store.list([`agent:${uid}`])) if (key.includes(id)) count++
		return count
	}
	await opened.tidy(Date.now())
	t.ok((await leftovers()) > 0, 'recent records may belong to a registration in progress')
	await opened.tidy(Date.now() + DAY_MS)
	t.equal(await leftovers(), 0)
	t.equal(await pointers(opened), 1)
	t.equal((await webhooks.list(ada)).length, 1)

	await opened.remove('ada')
	await opened.tidy(Date.now() + DAY_MS)
	t.equal(await pointers(opened), 0)
	for await (const { key } of store.list([`agent:${uid}`])) t.fail(`${key.join(' ')} is left`)
})

void t.test('the last 1,000 refused deliveries are kept, even across a restart', async (t) => {
	const { store } = newPlace().engine
	const delivery = (n: number) => ({
		delivery_id: newId(),
		webhook_slug: 'x',
		source_ip: String(n),
		signature_valid: false,
		run_id: null,
		status_code: 401,
		error: null,
		received_at: new Date().toISOString(),
	})
	const log = (limit: number, before?: string) =>
		deliveriesOf(store, 'uid', 'id', { limit, ...(before !== undefined && { before }) })
	let reject = rejectionsOf(store)
	for (let n = 0; n < 1_040; n++) {
		if (n % 100 === 7) reject = rejectionsOf(store)
		await reject('uid', 'id', delivery(n))
	}
	const all = await log(2_000)
	t.strictSame(
		all.map(({ source_ip }) => Number(source_ip)),
		Array.from({ length: 1_000 }, (_, n) => 1_039 - n),
	)

	const pages: string[] = []
	for (let before: string | undefined; ;) {
		const page = await log(300, before)
		if (page.length === 0) break
		pages.push(...page.map(({ source_ip }) => source_ip))
		before = page.at(-1)?.delivery_id
	}
	t.strictSame(
		pages.map(Number),
		all.map(({ source_ip }) => Number(source_ip)),
	)
	await Promise.all(Array.from({ length: 50 }, (_, n) => reject('uid', 'id', delivery(5_000 + n))))
	t.equal(
		(await log(50)).every(({ source_ip }) => Number(source_ip) >= 5_000),
		true,
		'with concurrent writes too',
	)
})
