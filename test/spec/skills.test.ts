/** The Skill resource, its states, and its rows in the spec's table "Skills", over HTTP. */
import { createHash } from 'node:crypto'
import { createServer } from 'node:http'
import type { RequestListener } from 'node:http'
import t from 'tap'
import type { Test } from 'tap'
import { addToken } from '../support/add.ts'
import { startGateway } from '../support/gateway.ts'
import type { Answer, Reply } from '../support/gateway.ts'
import { listenOnLoopback } from '../support/loopback.ts'
import { assertError } from '../support/error-response.ts'
import { addSkill, installSkill, programText, skillText } from '../support/skills.ts'
import { openStream } from '../support/sse.ts'

const gateway = await startGateway({ config: 'skills: {max_per_agent: 14}\n' })
t.teardown(() => gateway.stop())

const ISO = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/
const unknown = '01900000-0000-7000-8000-000000000000'

function call(method: string, path: string, body?: unknown, token?: string): Promise<Reply<Answer>> {
	return gateway.request(method, path, { ...(body !== undefined && { body }), ...(token !== undefined && { token }) })
}

async function createAgent(name: string): Promise<string> {
	const { status } = await call('POST', '/v1/agents', { name })
	if (status !== 201) throw new Error(`agent ${name}: ${status}`)
	return name
}

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex')

void t.test('an installed skill waits in quarantine and an approved one is active', async (t) => {
	const agent = await createAgent('lifecycle')
	const stream = await openStream(gateway.url, { query: { agent_id: agent } })
	t.teardown(() => stream.close())
	const content = skillText('greeting', 'Say hello.')

	const installed = await call('POST', `/v1/agents/${agent}/skills/install`, { content })
	t.equal(installed.status, 201)
	const { id, installed_at, ...rest } = installed.body
	t.strictSame(rest, { name: 'greeting', description: 'Does greeting.', status: 'quarantined' })
	t.match(installed_at, ISO)
	t.strictSame((await call('GET', `/v1/agents/${agent}/skills`)).body, [installed.body])
	t.strictSame((await call('GET', `/v1/agents/${agent}`)).body.skills, [], 'it is not active yet')

	const review = (await call('GET', `/v1/agents/${agent}/skills/${id}`)).body
	t.match(review, { ...installed.body, markdown: content, digest: sha256(content), source: { kind: 'inline' } })
	const approved = await call('POST', `/v1/agents/${agent}/skills/${id}/approve`, { digest: review.digest })
	t.equal(approved.status, 200)
	t.strictSame(approved.body, { ...installed.body, status: 'active' })
	t.strictSame((await call('GET', `/v1/agents/${agent}`)).body.skills, [{ id, name: 'greeting' }])
	t.match((await call('GET', `/v1/agents/${agent}/skills/${id}`)).body.approved_at, ISO)

	const again = await call('POST', `/v1/agents/${agent}/skills/${id}/approve`, { digest: review.digest })
	t.strictSame([again.status, again.body], [200, approved.body], 'a second approval changes nothing')

	t.equal((await call('DELETE', `/v1/agents/${agent}/skills/${id}`)).status, 204)
	t.strictSame((await call('GET', `/v1/agents/${agent}/skills`)).body, [])
	assertError(t, await call('DELETE', `/v1/agents/${agent}/skills/${id}`), { status: 404, code: 'not_found' })

	await stream.waitFor('skill.removed')
	const about = { skill: 'greeting', skill_id: id }
	t.match(
		stream.events.filter((event) => event.event_type.startsWith('skill.')).map((one) => [one.event_type, one.payload]),
		[
			['skill.installed', { ...about, digest: review.digest, source: 'inline' }],
			['skill.approved', { ...about, digest: review.digest, replaces: null }],
			['skill.removed', about],
		],
	)
})

void t.test('an approval requires the digest of the reviewed text', async (t) => {
	const agent = await createAgent('digests')
	const { id } = await installSkill(gateway, agent, skillText('one', 'Text.'))
	const path = `/v1/agents/${agent}/skills/${id}/approve`
	assertError(t, await call('POST', path, { digest: sha256('other') }), { status: 409, code: 'digest_mismatch' })
	assertError(t, await call('POST', path, { digest: 'abc' }), { status: 400, code: 'invalid_request', path: 'digest' })
	assertError(t, await call('POST', path, {}), { status: 400, code: 'invalid_request', path: 'digest' })
	t.equal((await call('GET', `/v1/agents/${agent}/skills`)).body[0].status, 'quarantined')
	const { digest } = (await call('GET', `/v1/agents/${agent}/skills/${id}`)).body
	t.equal((await call('POST', path, { digest })).status, 200)
	assertError(t, await call('POST', path, { digest: sha256('other') }), { status: 409, code: 'digest_mismatch' })
})

void t.test('a skill with the same name is a revision, which replaces the active one when approved', async (t) => {
	const agent = await createAgent('revisions')
	const first = await addSkill(gateway, agent, skillText('notes', 'Old line.\nSame line.'))
	const second = await installSkill(gateway, agent, skillText('notes', 'New \u200bline.\nSame line.'))
	t.equal(second.status, 'quarantined')
	t.not(second.id, first.id)
	t.strictSame((await call('GET', `/v1/agents/${agent}`)).body.skills, [{ id: first.id, name: 'notes' }])

	const review = (await call('GET', `/v1/agents/${agent}/skills/${second.id}`)).body
	t.equal(review.replaces, first.id)
	t.match(review.diff, '\n-Old line.\n+New \\u{200b}line.\n Same line.')
	t.equal((await call('GET', `/v1/agents/${agent}/skills/${first.id}`)).body.diff, null)

	await call('POST', `/v1/agents/${agent}/skills/${second.id}/approve`, { digest: review.digest })
	t.strictSame((await call('GET', `/v1/agents/${agent}/skills`)).body, [{ ...second, status: 'active' }])
	const gone = await call('POST', `/v1/agents/${agent}/skills/${first.id}/approve`, { digest: review.digest })
	assertError(t, gone, { status: 404, code: 'not_found' }, 'the revision that was replaced')
})

void t.test('after concurrent approvals of revisions exactly one is active', async (t) => {
	const agent = await createAgent('races')
	const revisions = await Promise.all(
		[1, 2, 3, 4].map((n) => installSkill(gateway, agent, skillText('same', `Text ${n}.`))),
	)
	const replies = await Promise.all(
		revisions.map(async ({ id }) => {
			const { digest } = (await call('GET', `/v1/agents/${agent}/skills/${id}`)).body
			return call('POST', `/v1/agents/${agent}/skills/${id}/approve`, { digest })
		}),
	)
	t.ok(replies.every(({ status }) => status === 200 || status === 404))
	const left = (await call('GET', `/v1/agents/${agent}/skills`)).body
	t.equal(left.length, 1)
	t.equal(left[0].status, 'active')
})

void t.test('the numbers of quarantined revisions and of skills per agent are limited', async (t) => {
	const agent = await createAgent('bounded')
	const waiting: Answer[] = []
	for (let n = 0; n < 10; n++) waiting.push(await installSkill(gateway, agent, skillText('again', `Text ${n}.`)))
	const eleventh = await call('POST', `/v1/agents/${agent}/skills/install`, { content: skillText('again', 'Text.') })
	assertError(t, eleventh, {
		status: 409,
		code: 'conflict',
		message: new RegExp(`remove one of them.*${waiting[0].id}`),
	})
	for (let n = 0; n < 4; n++) await installSkill(gateway, agent, skillText(`other-${n}`, 'Text.'))
	const full = await call('POST', `/v1/agents/${agent}/skills/install`, { content: skillText('more', 'Text.') })
	assertError(t, full, { status: 409, code: 'conflict', message: /max_per_agent/ })
	await call('DELETE', `/v1/agents/${agent}/skills/${waiting[0].id}`)
	await installSkill(gateway, agent, skillText('more', 'Text.'))
})

void t.test('config.approved_skills approves all of its skills or none', async (t) => {
	const agent = await createAgent('by-config')
	await createAgent('other-owner')
	const [a, b] = [
		await installSkill(gateway, agent, skillText('a', 'A.')),
		await installSkill(gateway, agent, skillText('b', 'B.')),
	]
	const foreign = await installSkill(gateway, 'other-owner', skillText('c', 'C.'))
	const patch = (approved_skills: unknown, more: object = {}): Promise<Reply<Answer>> =>
		call('PATCH', `/v1/agents/${agent}`, { persona: 'Changed.', config: { approved_skills, ...more } })

	for (const ids of [[a.id, unknown], [a.id, foreign.id], ['']])
		t.ok([400, 404].includes((await patch(ids)).status), `${ids}`)
	t.equal((await patch([a.id], { note: 'x'.repeat(70_000) })).status, 400, 'a config that is too large')
	assertError(t, await patch('all'), { status: 400, code: 'invalid_request', path: 'config.approved_skills' })
	const { persona, skills } = (await call('GET', `/v1/agents/${agent}`)).body
	t.strictSame([persona, skills], [null, []], 'nothing has changed')
	t.equal((await call('GET', '/v1/agents/other-owner')).body.skills.length, 0)

	const done = await patch([a.id, b.id, a.id], { temperature: 1 })
	t.equal(done.status, 200)
	t.strictSame(done.body.config, { temperature: 1 }, 'approved_skills is not stored')
	const ids = (await call('GET', `/v1/agents/${agent}`)).body.skills.map((one: Answer) => one.id)
	t.strictSame(ids, [a.id, b.id])
	t.equal((await patch([a.id])).status, 200, 'a second time')
	t.equal((await patch(null)).status, 200)

	const revision = await installSkill(gateway, agent, skillText('a', 'A2.'))
	const third = await installSkill(gateway, agent, skillText('a', 'A3.'))
	assertError(t, await patch([revision.id, third.id]), {
		status: 400,
		code: 'invalid_request',
		message: /revisions of "a"/,
	})
	const made = await call('POST', '/v1/agents', { name: 'new-one', config: { approved_skills: [a.id] } })
	assertError(t, made, { status: 400, code: 'invalid_request', path: 'config.approved_skills' })
	t.equal((await call('POST', '/v1/agents', { name: 'new-one', config: { approved_skills: [] } })).status, 201)
})

void t.test("another agent's skills are not accessible", async (t) => {
	await createAgent('owner')
	await createAgent('stranger')
	const { id } = await installSkill(gateway, 'owner', skillText('mine', 'Mine.'))
	const { digest } = (await call('GET', `/v1/agents/owner/skills/${id}`)).body
	for (const [method, path, body] of [
		['GET', `/v1/agents/stranger/skills/${id}`],
		['POST', `/v1/agents/stranger/skills/${id}/approve`, { digest }],
		['DELETE', `/v1/agents/stranger/skills/${id}`],
		['GET', '/v1/agents/nobody/skills'],
		['POST', '/v1/agents/nobody/skills/install', { content: skillText('a', 'A.') }],
	] as const)
		assertError(t, await call(method, path, body), { status: 404, code: 'not_found' }, path)
	t.equal((await call('GET', '/v1/agents/owner/skills')).body[0].status, 'quarantined')
})

void t.test('deleting an agent deletes its skills', async (t) => {
	const agent = await createAgent('short-lived')
	await addSkill(gateway, agent, skillText('old', 'Old.'))
	await call('DELETE', `/v1/agents/${agent}`)
	await createAgent('short-lived')
	t.strictSame((await call('GET', `/v1/agents/${agent}/skills`)).body, [])
	t.strictSame((await call('GET', `/v1/agents/${agent}`)).body.skills, [])
})

void t.test('each route requires its scope', async (t) => {
	const agent = await createAgent('scoped')
	const { id } = await installSkill(gateway, agent, skillText('a', 'A.'))
	const { digest } = (await call('GET', `/v1/agents/${agent}/skills/${id}`)).body
	const reader = (await addToken(gateway, ['agents:read'])).token
	const writer = (await addToken(gateway, ['agents:write'])).token
	const base = `/v1/agents/${agent}/skills`
	for (const [method, path, body] of [
		['POST', `${base}/install`, { content: skillText('b', 'B.') }],
		['POST', `${base}/${id}/approve`, { digest }],
		['DELETE', `${base}/${id}`],
	] as const)
		assertError(
			t,
			await call(method, path, body, reader),
			{ status: 403, code: 'forbidden', message: /agents:write/ },
			path,
		)
	for (const path of [base, `${base}/${id}`]) {
		assertError(
			t,
			await call('GET', path, undefined, writer),
			{ status: 403, code: 'forbidden', message: /agents:read/ },
			path,
		)
		t.equal((await call('GET', path, undefined, reader)).status, 200)
	}
})

void t.test('an invalid document is rejected with the line and what to change', async (t) => {
	const agent = await createAgent('mistakes')
	const head = (lines: string): string => `---\n${lines}\n---\nBody.`
	const cases: [content: string, message: RegExp][] = [
		['Just text.', /line 1: .*front matter/],
		['---\nname: a\ndescription: b\nBody.', /line 1: .*does not end/],
		[head('description: b'), /name is missing/],
		[head('name: a'), /description is missing/],
		[head('name: 5\ndescription: b'), /line 2: name must be text/],
		[head('name: a\ndescription: ""'), /line 3: description must not be empty/],
		[head(`name: a\ndescription: ${'d'.repeat(8193)}`), /line 3: description/],
		[head(`name: ${'n'.repeat(65)}\ndescription: b`), /line 2: name/],
		[head('name: "a\\u200bb"\ndescription: b'), /line 2: name must be .*printable/],
		[head('name: " a"\ndescription: b'), /line 2: name/],
		[head('name: a\ndescription: b\nname: c'), /line 4: the key name occurs twice/],
		[head('name: &x a\ndescription: *x'), /line 2: anchors/],
		[head('name: a\ndescription: !!str b'), /line 3: tags/],
		[head('name: a\ndescription: b\n<<: {c: d}'), /line 4: the key << is not supported/],
		[head('name: a\ndescription: b\n__proto__: {c: d}'), /line 4: the key __proto__/],
		[head('name: a\ndescription: b: c'), /line 3: /],
		[head('- name'), /must be a map/],
		[head(`name: a\ndescription: ${'['.repeat(10_000)}`), /line 3: nested/],
		[head(`name: a\ndescription: ${'- '.repeat(5_000)}`), /line 3: nested/],
		[head(`name: a\ndescription: b\nx: "${'x'.repeat(17_000)}"`), /front matter/],
		[
			head('name: a\ndescription: b\nruntime: python'),
			/line 4: runtime must be javascript, also for a block marked ts/,
		],
		[head('name: a\ndescription: b\nruntime: javascript'), /needs a program/],
		[head('name: a\ndescription: b\npermissions: {hosts: [10.0.0.1]}'), /line 4: permissions.hosts/],
		[head('name: a\ndescription: b\npermissions: {hosts: ["*.example.com"]}'), /line 4: permissions.hosts/],
		[head('name: a\ndescription: b\npermissions: {files: [a]}'), /line 4: permissions.files is not a known key/],
		[head('name: a\ndescription: b\nparameters:\n  - {name: x, type: text}'), /line 5: parameters\[0\].type/],
		[head('name: a\ndescription: b\nparameters:\n  - {name: "x y", type: string}'), /line 5: parameters\[0\].name/],
		[
			head('name: a\ndescription: b\nparameters:\n  - {name: x, type: integer, default: 1.5}'),
			/line 5: .*does not fit/,
		],
		[head('name: a\ndescription: b\nparameters: [{name: x, type: string}, {name: x, type: string}]'), /of this name/],
		['---\nname: a\ndescription: b\n---\n \n', /line 5: the body is empty/],
		[`---\nname: a\ndescription: b\n---\n${'x'.repeat(256 * 1024 + 1)}`, /the body has/],
		['---\nname: a\ndescription: b\n---\nx\0y', /not text/],
		[programText('a', 'export default async ( => 1'), /line 7, column/],
		[skillText('a', '```js\nconst a = 1\n```', 'runtime: javascript'), /no default export/],
	]
	for (const [content, message] of cases) {
		const reply = await call('POST', `/v1/agents/${agent}/skills/install`, { content })
		const about = content.slice(0, 60)
		t.equal(reply.status, 400, `${about}: ${JSON.stringify(reply.body)}`)
		t.equal(reply.body.code, 'skill_invalid', about)
		t.match(reply.body.message, message, about)
	}
	t.strictSame((await call('GET', `/v1/agents/${agent}/skills`)).body, [])
})

void t.test('a request has exactly one of url, content and files', async (t) => {
	const agent = await createAgent('requests')
	const path = `/v1/agents/${agent}/skills/install`
	const content = skillText('a', 'A.')
	assertError(t, await call('POST', path, {}), {
		status: 400,
		code: 'invalid_request',
		message: /url, content or files/,
	})
	const both = await call('POST', path, { content, url: 'https://example.com/' })
	assertError(t, both, { status: 400, code: 'invalid_request', message: /one of url, content and files/ })
	assertError(t, await call('POST', path, { content: 5 }), { status: 400, code: 'invalid_request', path: 'content' })
	assertError(t, await call('POST', path, { content, more: 1 }), { status: 400, code: 'invalid_request', path: 'more' })
	const large = await call('POST', path, { content: 'x'.repeat(300 * 1024) })
	assertError(t, large, { status: 400, code: 'invalid_request', path: 'content' })
})

void t.test('fields beyond the spec are stored and returned in a review', async (t) => {
	const agent = await createAgent('full')
	const head = [
		'license: MIT',
		'compatibility: Anything.',
		'metadata: {author: me, version: "1"}',
		'allowed-tools: Bash(git:*) Read',
		'homepage: https://example.com/',
		'parameters:',
		'  - {name: town, type: string, required: true, description: Which.}',
		'  - {name: unit, type: string, enum: [c, f], default: c}',
		'permissions: {primitives: [memory.stm_read, gone.away], hosts: [API.example.com], secrets: [KEY]}',
	].join('\n')
	const { id } = await installSkill(gateway, agent, programText('Wetter für 3 Tage', 'return 1', head))
	const review = (await call('GET', `/v1/agents/${agent}/skills/${id}`)).body
	t.match(review, {
		name: 'Wetter für 3 Tage',
		tool: 'skill_wetter-fur-3-tage',
		runtime: 'javascript',
		parameters: [
			{ name: 'town', type: 'string', required: true, description: 'Which.' },
			{ name: 'unit', type: 'string', required: false, description: '', enum: ['c', 'f'], default: 'c' },
		],
		permissions: { primitives: ['memory.stm_read', 'gone.away'], hosts: ['api.example.com'], secrets: ['KEY'] },
		metadata: {
			license: 'MIT',
			compatibility: 'Anything.',
			metadata: { author: 'me', version: '1' },
			'allowed-tools': 'Bash(git:*) Read',
			homepage: 'https://example.com/',
		},
	})
	t.match(review.warnings.join('\n'), /outside the Agent Skills standard/)
	t.match(review.warnings.join('\n'), /allowed-tools is only a request/)
	t.match(review.warnings.join('\n'), /declares the primitive gone\.away, which does not exist/)
	t.notMatch(review.warnings.join('\n'), /memory\.stm_read/)
	const rules = review.findings.map((one: Answer) => one.rule)
	t.ok(rules.includes('unused-permission') && rules.includes('may-send-out'))
})

async function serve(t: Test, listener: RequestListener): Promise<string> {
	const server = createServer(listener)
	const { url, stop } = await listenOnLoopback(server)
	t.teardown(stop)
	return url
}

void t.test('a skill is fetched from a URL', async (t) => {
	const agent = await createAgent('fetching')
	const content = `\uFEFF${skillText('fetched', 'Größe.')}`
	let hits = 0
	const base = await serve(t, (request, response) => {
		hits++
		const answer = (type: string | undefined, body: string | Buffer, status = 200): void => {
			response.writeHead(status, type === undefined ? {} : { 'content-type': type })
			response.end(body)
		}
		switch (request.url) {
			case '/skill.md':
				return answer('text/markdown; charset=utf-8', content)
			case '/page':
				return answer('text/html', '<html>')
			case '/latin':
				return answer('text/plain', Buffer.from('---\nname: a\ndescription: gr\xf6\xdfe\n---\nx', 'latin1'))
			case '/large':
				return answer('text/plain', 'x'.repeat(300 * 1024))
			case '/moved':
				response.writeHead(302, { location: '/skill.md' })
				return response.end()
			case '/cloud':
				response.writeHead(302, { location: 'http://169.254.169.254/latest/meta-data/' })
				return response.end()
			default:
				return answer('text/plain', 'gone', 404)
		}
	})
	const install = (url: string, token?: string): Promise<Reply<Answer>> =>
		call('POST', `/v1/agents/${agent}/skills/install`, { url }, token)

	const { status, body } = await install(`${base}/skill.md`)
	t.equal(status, 201, JSON.stringify(body))
	const review = (await call('GET', `/v1/agents/${agent}/skills/${body.id}`)).body
	const url = `${base}/skill.md`
	t.match(review, { digest: sha256(content), source: { kind: 'url', url, resolved_url: url }, markdown: content })
	for (const [path, message] of [
		['/page', /text\/html.*raw file/],
		['/latin', /UTF-8/],
		['/large', /256 KiB|262144|large/i],
		['/none', /status 404/],
	] as const) {
		const reply = await install(base + path)
		t.equal(reply.status, 400, `${path} ${JSON.stringify(reply.body)}`)
		t.match(reply.body.message, message, path)
	}

	// A caller with the scope * may name a private address, but no redirect to one is followed.
	const stream = await openStream(gateway.url, { query: { agent_id: agent, event_type: 'security.violation' } })
	t.teardown(() => stream.close())
	const cloud = await install(`${base}/cloud`)
	assertError(t, cloud, { status: 400, code: 'address_refused', path: 'url' })
	t.match((await stream.waitFor('security.violation')).payload, { reason: 'address_refused' })
	const moved = await install(`${base}/moved`)
	assertError(t, moved, { status: 400, code: 'address_refused', path: 'url' }, 'a redirect to a private address')

	const writer = (await addToken(gateway, ['agents:write'])).token
	const before = hits
	for (const address of [`${base}/skill.md`, 'http://[::1]:1/', 'http://localhost:1/', 'http://0x7f000001:1/'])
		assertError(t, await install(address, writer), { status: 400, code: 'address_refused', path: 'url' }, address)
	for (const address of ['file:///etc/passwd', 'ftp://example.com/', 'https://a:b@example.com/'])
		assertError(t, await install(address), { status: 400, code: 'address_refused', path: 'url' }, address)
	assertError(t, await install('no address'), { status: 400, code: 'invalid_request', path: 'url' })
	t.equal(hits, before, 'the server got no request')
	t.notMatch(JSON.stringify(stream.events), /a:b@/)
})

void t.test('a skill is not installed if its agent is deleted while it is fetched', async (t) => {
	const agent = await createAgent('in-a-hurry')
	const requested = Promise.withResolvers<void>()
	const released = Promise.withResolvers<void>()
	const base = await serve(t, (_request, response) => {
		requested.resolve()
		void released.promise.then(() =>
			response.writeHead(200, { 'content-type': 'text/plain' }).end(skillText('late', 'Text.')),
		)
	})
	const installing = call('POST', `/v1/agents/${agent}/skills/install`, { url: base })
	await requested.promise
	t.equal((await call('DELETE', `/v1/agents/${agent}`)).status, 204)
	released.resolve()
	assertError(t, await installing, { status: 404, code: 'not_found' })
	const { events } = (await call('GET', `/v1/audit?agent_id=${agent}`)).body
	t.notOk(events.some((event: Answer) => event.event_type === 'skill.installed'))
})

void t.test('skills.allow_private_urls permits private addresses for every caller', async (t) => {
	const open = await startGateway({ config: 'skills: {allow_private_urls: true}\n' })
	t.teardown(() => open.stop())
	const base = await serve(t, (_request, response) => {
		response.writeHead(200, { 'content-type': 'text/plain' }).end(skillText('near', 'Text.'))
	})
	await open.request('POST', '/v1/agents', { body: { name: 'ada' } })
	const token = (await addToken(open, ['agents:write'])).token
	const reply = await open.request('POST', '/v1/agents/ada/skills/install', { body: { url: base }, token })
	t.equal(reply.status, 201, JSON.stringify(reply.body))
})
