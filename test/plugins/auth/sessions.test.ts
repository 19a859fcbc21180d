/** The limit for sessions of the console. */
import t from 'tap'
import { sessionsOf } from '../../../plugins/auth/oidc/sessions.ts'
import { openMemory } from '../../support/memory-engine.ts'

const claims = (sub: string) => ({ iss: 'https://login.example.com', sub, exp: 0 })

void t.test('repeated logins end earlier sessions of the same person only', async (t) => {
	const engine = openMemory()
	t.teardown(() => engine[Symbol.asyncDispose]())
	const sessions = sessionsOf(engine)
	const real = Date.now
	t.teardown(() => (Date.now = real))
	let passed = 0
	Date.now = () => real() + ++passed
	const other = await sessions.create(claims('ann'))
	const cookies: string[] = []
	for (let n = 0; n < 40; n++) cookies.push(await sessions.create(claims('eve')))
	const found = await Promise.all(cookies.map((cookie) => sessions.find(cookie)))
	t.strictSame(
		found.map((one) => one !== undefined),
		cookies.map((_, n) => n >= 8),
		'the 32 newest',
	)
	t.match(await sessions.find(other), { claims: { sub: 'ann' } })
})
