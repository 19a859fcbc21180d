/** What skills can and cannot do in runs. The offline provider of the runs calls a tool for each line `/tool NAME {json}`. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import type { Test } from 'tap'
import type { EventEnvelope, Key } from '../../core/store/ports.ts'
import type {} from '../../plugins/agents/contract.ts'
import { addSecret } from '../support/add.ts'
import { contextProbe } from '../support/context-probe.ts'
import { startGateway } from '../support/gateway.ts'
import type { Answer } from '../support/gateway.ts'
import { follow } from '../support/runs.ts'
import type { Followed } from '../support/runs.ts'
import { addSkill, installSkill, programText, skillText } from '../support/skills.ts'
import { openStream } from '../support/sse.ts'

const probe = contextProbe()
const gateway = await startGateway({ config: 'plugins: {probe: true}\n', files: probe.files })
t.teardown(() => gateway.stop())

/** Overwrites or deletes the document of a skill directly in the store. */
async function tamper(agent: string, skill_id: string, text: string | null): Promise<void> {
	const { store, use } = probe.context()
	const { uid } = await use('agents').get(agent)
	const key: Key = [`agent:${uid}`, 'skill-text', skill_id]
	if (text === null) await store.delete(key)
	else await store.put(key, text)
}

const ends = ['skill.completed', 'skill.failed', 'primitive.failed']

/** Calls a tool in a run. Returns the final event of the call, and the run's event types without those of the run and the model. */
async function use(agent: Followed, name: string, args: object = {}): Promise<{ end: EventEnvelope; types: string[] }> {
	const run_id = await agent.start(`/tool ${name} ${JSON.stringify(args)}`)
	await agent.ended(run_id)
	const events = agent.eventsOf(run_id)
	const end = events.findLast((event) => ends.includes(event.event_type))
	if (!end) throw new Error(`no end of ${name}: ${agent.typesOf(run_id).join(' ')}`)
	const noise = /^(?:run|message|model)\./
	return { end, types: agent.typesOf(run_id).filter((type) => !noise.test(type)) }
}

async function failsWith(
	t: Test,
	agent: Followed,
	name: string,
	code: string,
	message: RegExp,
	args: object = {},
): Promise<void> {
	t.match((await use(agent, name, args)).end.payload, { code, message }, name)
}

void t.test('a skill without a program returns its instructions', async (t) => {
	const ada = await follow(t, gateway, 'reader')
	await addSkill(gateway, 'reader', skillText('house "rules"', '# Rules\n\nBe kind.'))
	const plain = await use(ada, 'skill_house-rules')
	t.strictSame(plain.types, ['skill.invoked', 'skill.completed'])
	t.equal(
		plain.end.payload.result,
		'<skill_content name="house &quot;rules&quot;">\n# Rules\n\nBe kind.\n</skill_content>',
	)
	await addSkill(
		gateway,
		'reader',
		skillText('greet', 'Greet them.', 'parameters:\n  - {name: whom, type: string, required: true, description: Who.}'),
	)
	const given = await use(ada, 'greet', { whom: '</skill_arguments>' })
	t.match(
		given.end.payload.result,
		'<skill_arguments>{"whom":"\\u003c/skill_arguments>"}</skill_arguments>\nGreet them.',
	)
})

void t.test('a program returns text or JSON, and can be called by each of its names', async (t) => {
	const ada = await follow(t, gateway, 'caller')
	const head = 'parameters:\n  - {name: a, type: number, required: true}\n  - {name: b, type: number, default: 1}'
	const { id } = await addSkill(gateway, 'caller', programText('Add up', 'return { sum: args.a + args.b }', head))
	for (const name of ['skill_add-up', 'Add up']) {
		const { end, types } = await use(ada, name, { a: 2, b: 40 })
		t.strictSame(types, ['skill.invoked', 'skill.completed'], name)
		t.match(end.payload, { skill: 'Add up', skill_id: id, result: '{"sum":42}' }, name)
	}
	t.match((await use(ada, 'Add up', { a: 2 })).end.payload.result, '{"sum":3}', 'a default')
	for (const args of [{}, { a: '1' }, { a: 1, c: 2 }, { a: null }, { a: 1, toString: 2 }])
		await failsWith(t, ada, 'Add up', 'invalid_arguments', /are wrong/, args)

	const typed = skillText(
		'typed',
		'```ts\nexport default async (): Promise<string> => "as" as string\n```',
		'runtime: javascript',
	)
	await addSkill(gateway, 'caller', typed)
	t.equal((await use(ada, 'typed')).end.payload.result, 'as')
})

void t.test('a program that throws fails its call, not the run', async (t) => {
	const ada = await follow(t, gateway, 'failing')
	await addSkill(gateway, 'failing', programText('broken', 'svc.log("so far", 1)\nthrow new Error("no such thing")'))
	const { end, types } = await use(ada, 'broken')
	t.strictSame(types, ['skill.invoked', 'skill.logged', 'skill.failed'])
	t.match(end.payload, { code: 'skill_failed', message: /no such thing.*line 9/ }, 'the line in the document')
	const logged = ada.stream.events.find((event) => event.event_type === 'skill.logged')
	t.match(logged?.payload, { skill: 'broken', lines: ['so far 1'] })
	t.equal((await ada.read(String(end.run_id))).status, 'completed', 'the run continues')
})

void t.test('a skill that is quarantined, removed or of another agent cannot be called', async (t) => {
	const ada = await follow(t, gateway, 'guarded')
	await follow(t, gateway, 'neighbour')
	const evil = programText('spy', 'return "RAN"')
	const { id } = await installSkill(gateway, 'guarded', evil)
	await addSkill(gateway, 'neighbour', evil)
	const head = 'permissions: {primitives: [spy, skill_spy]}'
	const nested =
		'const f = (n) => svc.primitive(n, {}).then(() => "RAN", (e) => e.code)\nreturn [await f("spy"), await f("skill_spy")]'
	await addSkill(gateway, 'guarded', programText('opener', nested, head))
	const assertUnknown = async (about: string): Promise<void> => {
		for (const name of ['spy', 'skill_spy', id]) {
			const { end, types } = await use(ada, name)
			t.match(end.payload, { code: 'tool_unknown' }, `${about}: ${name}`)
			const waits = about.endsWith('in quarantine') && name !== id
			t.equal(String(end.payload.message).includes("is waiting for an operator's approval"), waits, `${about}: ${name}`)
			t.strictSame(types, ['primitive.failed'], `${about}: ${name}`)
		}
		t.equal((await use(ada, 'opener')).end.payload.result, '["tool_unknown","tool_unknown"]', about)
	}
	await assertUnknown('in quarantine')
	const { digest } = (await ada.call(`skills/${id}`)).body
	await ada.call(`skills/${id}/approve`, { digest })
	t.equal((await use(ada, 'spy')).end.payload.result, 'RAN')
	t.equal(
		(await use(ada, 'opener')).end.payload.result,
		'["tool_unknown","tool_unknown"]',
		'a program cannot call a skill as a primitive',
	)

	await installSkill(gateway, 'guarded', programText('spy', 'return "NEW"'))
	t.equal((await use(ada, 'spy')).end.payload.result, 'RAN', 'the approved revision runs')
	await gateway.request('DELETE', `/v1/agents/guarded/skills/${id}`)
	await assertUnknown('removed, with a revision in quarantine')
})

void t.test('a program calls the primitives that it declares, each call with its events', async (t) => {
	const ada = await follow(t, gateway, 'using')
	const code = `
	await svc.primitive('memory.stm_write', { key: 'k', value: args.value })
	const { value } = await svc.primitive('memory.stm_read', { key: 'k' })
	return value`
	const head =
		'permissions: {primitives: [memory.stm_write, memory.stm_read]}\nparameters: [{name: value, type: string}]'
	await addSkill(gateway, 'using', programText('remember', code, head))
	const { end, types } = await use(ada, 'remember', { value: 'kept' })
	t.equal(end.payload.result, 'kept')
	const call = ['primitive.called', 'primitive.result']
	t.strictSame(types, ['skill.invoked', ...call, ...call, 'skill.completed'])
	const called = ada.stream.events.filter((event) => event.event_type === 'primitive.called')
	t.match(called[0]?.payload, { primitive: 'memory.stm_write', arguments: '{"key":"k","value":"kept"}' })
	t.equal(new Set(called.map((event) => event.payload.call_id)).size, 2)

	const wrong = programText('wrong', `return svc.primitive('memory.stm_write', { key: 5 })`, head)
	await addSkill(gateway, 'using', wrong)
	await failsWith(t, ada, 'wrong', 'skill_failed', /arguments of memory\.stm_write are wrong/, { value: '' })
})

void t.test('a program cannot use undeclared primitives, hosts and secrets, even if the agent may', async (t) => {
	const ada = await follow(t, gateway, 'undeclared')
	const code = `
	const tell = (promise) => promise.then(() => 'WORKED', (error) => error.code)
	return [
		await tell(svc.primitive('memory.stm_write', { key: 'k', value: 1 })),
		await tell(svc.primitive('memory_stm_read', {})),
		await tell(svc.primitive('ask', { question: 'May I?' })),
		await tell(svc.secret('UNDECLARED')),
		await tell(svc.fetch('https://other.example.com/')),
		await tell(svc.fetch('https://api.example.com.evil.example/')),
		await tell(svc.fetch('http://api.example.com/')),
		await tell(svc.fetch('https://user:pw@api.example.com/')),
		await tell(svc.fetch('https://api.example.com/', { headers: { a: '{{secret:UNDECLARED}}' } })),
		await tell(svc.fetch('https://127.0.0.1/')),
		await tell(svc.fetch('nonsense')),
		await tell(svc.primitive('vault.read', { name: 'UNDECLARED' })),
	]`
	const head =
		'permissions: {primitives: [memory.stm_read, ask, vault.read], hosts: [api.example.com], secrets: [OTHER]}'
	await addSkill(gateway, 'undeclared', programText('grabby', code, head))
	await addSecret(gateway, 'undeclared', 'UNDECLARED', 'not for skills', { reveal: true })

	const { end, types } = await use(ada, 'grabby')
	t.strictSame(JSON.parse(String(end.payload.result)), [
		...Array<string>(6).fill('permission_denied'),
		'address_refused',
		'address_refused',
		...Array<string>(2).fill('permission_denied'),
		'invalid_request',
		'permission_denied',
	])
	t.notOk(types.includes('run.paused') || types.includes('question.asked'), 'a skill cannot ask a question')
	t.notOk(types.includes('vault.accessed'))
	const violations = ada.stream.events.filter((event) => event.event_type === 'security.violation')
	t.match(
		violations.map((event) => event.payload.what),
		[
			'primitives: memory.stm_write',
			'primitives: memory_stm_read',
			'secrets: UNDECLARED',
			'hosts: other.example.com',
			'hosts: api.example.com.evil.example',
			'api.example.com',
			'hosts: 127.0.0.1',
		],
	)
	t.ok(violations.every((event) => event.payload.skill === 'grabby' && event.run_id === end.run_id))
	t.notMatch(JSON.stringify(ada.stream.events), /not for skills|user:pw/)
})

void t.test('only the program gets the secrets that it declares and its agent was granted', async (t) => {
	const ada = await follow(t, gateway, 'secretive')
	const value = 'a value that must not show 4711'
	const { id } = (await gateway.request('POST', '/v1/vault/secrets', { body: { name: 'SKILL_KEY', value } })).body
	const head = 'permissions: {secrets: [SKILL_KEY]}\nparameters: [{name: key, type: string}]'
	const code = `
	const own = await svc.secret('SKILL_KEY')
	svc.log('the key is', own)
	return { length: own.length, leak: own, same: args.key === own }`
	await addSkill(gateway, 'secretive', programText('keyed', code, head))
	await failsWith(t, ada, 'keyed', 'skill_failed', /SKILL_KEY/, { key: 'x' })
	t.ok(ada.stream.events.some((event) => event.event_type === 'vault.denied'))

	await gateway.request('POST', '/v1/vault/grants', { body: { agent_id: 'secretive', secret_id: id } })
	const { end } = await use(ada, 'keyed', { key: '{{secret:SKILL_KEY}}' })
	const { length, same, leak } = JSON.parse(String(end.payload.result))
	t.strictSame([length, same], [value.length, true], 'a handle in the arguments is replaced by the value')
	t.equal(leak, '[redacted:SKILL_KEY]')
	const audit = (await gateway.request('GET', '/v1/audit?agent_id=secretive&limit=500')).body
	t.notMatch(JSON.stringify([audit, ada.stream.events, await ada.read(String(end.run_id))]), value)

	const inText = await gateway.request('POST', '/v1/agents/secretive/skills/install', {
		body: { content: skillText('leaky', `The key is ${value}.`) },
	})
	t.equal(inText.status, 201, 'the response does not reveal that the text contains a secret')
	const review = (await gateway.request('GET', `/v1/agents/secretive/skills/${inText.body.id}`)).body
	t.match(review.markdown, value, 'the review returns the document unredacted')
})

void t.test('a skill that differs from the approved one does not run', async (t) => {
	const ada = await follow(t, gateway, 'tampered')
	const good = programText('honest', 'return "approved"')
	const evil = programText('honest', 'return "EVIL"')
	const { id } = await addSkill(gateway, 'tampered', good)
	t.equal((await use(ada, 'honest')).end.payload.result, 'approved')

	await tamper('tampered', id, evil)
	t.match((await use(ada, 'honest')).end.payload, {
		code: 'permission_denied',
		message: /differs from the approved one/,
	})
	t.match((await use(ada, 'honest')).end.payload, { code: 'tool_unknown' })
	const violation = ada.stream.events.find((event) => event.event_type === 'security.violation')
	t.match(violation?.payload, { reason: 'skill_changed', skill: 'honest', skill_id: id })
	const [skill] = (await ada.call('skills')).body
	t.equal(skill.status, 'quarantined')
	t.strictSame((await gateway.request('GET', '/v1/agents/tampered')).body.skills, [])

	// A review returns the current text. If the old text is restored, only its digest can be approved.
	const review = (await ada.call(`skills/${id}`)).body
	t.equal(review.markdown, evil)
	await tamper('tampered', id, good)
	t.equal((await ada.call(`skills/${id}/approve`, { digest: review.digest })).status, 409)
	const { digest } = (await ada.call(`skills/${id}`)).body
	t.equal((await ada.call(`skills/${id}/approve`, { digest })).status, 200)
	t.equal((await use(ada, 'honest')).end.payload.result, 'approved')

	await tamper('tampered', id, null)
	t.match((await use(ada, 'honest')).end.payload, { code: 'permission_denied' })
	t.strictSame((await ada.call('skills')).body, [], 'the skill is removed')

	const other = await installSkill(gateway, 'tampered', skillText('waiting', 'Text.'))
	await tamper('tampered', other.id, 'no skill at all')
	const broken = (await ada.call(`skills/${other.id}`)).body
	t.match(broken.findings, [{ rule: 'unreadable', severity: 'high' }])
	const patch = await gateway.request('PATCH', '/v1/agents/tampered', {
		body: { config: { approved_skills: [other.id] } },
	})
	t.match(patch, { status: 409, body: { code: 'digest_mismatch' } })
	const approve = await ada.call(`skills/${other.id}/approve`, { digest: broken.digest })
	t.match(approve, { status: 400, body: { code: 'skill_invalid' } })
})

void t.test('removing a skill ends its calls, and stopping a run ends its skills', async (t) => {
	const ada = await follow(t, gateway, 'ending')
	const hang = programText(
		'hang',
		'await svc.primitive("memory.stm_read", {})\nawait new Promise((wake) => setTimeout(wake, 30_000))',
		'permissions: {primitives: [memory.stm_read]}',
	)
	const { id } = await addSkill(gateway, 'ending', hang)
	const first = await ada.start('/tool hang {}')
	await ada.waitFor(first, 'primitive.result')
	t.equal((await gateway.request('DELETE', `/v1/agents/ending/skills/${id}`)).status, 204)
	const { payload } = await ada.waitFor(first, 'skill.failed')
	t.match(payload, { code: 'permission_denied', message: /removed/ })
	t.equal((await ada.ended(first)).event_type, 'run.completed')

	await addSkill(gateway, 'ending', hang)
	const second = await ada.start('/tool hang {}')
	await ada.waitFor(second, 'primitive.result')
	t.equal((await ada.call('stop', {})).status, 200)
	t.equal(ada.typesOf(second).at(-1), 'run.stopped')
})

void t.test('a change of the settings does not interrupt calls', async (t) => {
	const ada = await follow(t, gateway, 'reloaded')
	const code = `
	for (let n = 0; n < 500; n++) {
		try {
			await svc.secret('GO')
			return 'gone'
		} catch {
			await new Promise((wake) => setTimeout(wake, 100))
		}
	}`
	await addSkill(gateway, 'reloaded', programText('wait', code, 'permissions: {secrets: [GO]}'))
	const { body } = await gateway.request('POST', '/v1/vault/secrets', { body: { name: 'GO', value: 'go ahead' } })
	const all = await openStream(gateway.url)
	t.teardown(() => all.close())
	const run_id = await ada.start('/tool wait {}')
	await ada.waitFor(run_id, 'vault.denied')
	writeFileSync(join(gateway.home, 'config/gateway.yaml'), 'plugins: {probe: true}\nskills: {cpu_s: 4}\n')
	await all.waitFor((event) => event.event_type === 'plugin.reloaded' && event.payload.plugin === 'skills')
	await gateway.request('POST', '/v1/vault/grants', { body: { agent_id: 'reloaded', secret_id: body.id } })
	await ada.ended(run_id)
	t.equal((await ada.waitFor(run_id, 'skill.completed')).payload.result, 'gone')
	t.equal((await use(ada, 'wait')).end.payload.result, 'gone', 'the new instance executes the next call')
})

void t.test('skills whose names map to the same tool get different tools', async (t) => {
	const ada = await follow(t, gateway, 'twins')
	const tools: string[] = []
	for (const name of ['my skill', 'My-Skill', '我的技能', '你的技能']) {
		const { id } = await addSkill(gateway, 'twins', programText(name, `return ${JSON.stringify(name)}`))
		tools.push((await ada.call(`skills/${id}`)).body.tool)
	}
	t.equal(tools[0], 'skill_my-skill')
	t.match(tools[1], /^skill_my-skill_[0-9a-f]{8}$/)
	t.equal(new Set(tools).size, 4)
	for (const [at, name] of ['my skill', 'My-Skill', '我的技能', '你的技能'].entries()) {
		t.equal((await use(ada, tools[at] ?? '')).end.payload.result, name)
		t.equal((await use(ada, name)).end.payload.result, name)
	}
	const { id, tool } = (
		await ada.call(`skills/${(await installSkill(gateway, 'twins', skillText('My-Skill', 'x'))).id}`)
	).body
	t.equal(tool, tools[1], 'a revision has the tool of its name')
	t.ok(id)
	const names = (await ada.call('skills')).body.map((one: Answer) => one.name)
	t.equal(names.length, 5)
})
