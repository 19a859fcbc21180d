/** The program that a review returns is the one that runs. A document with an ambiguous program is rejected. */
import { writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import t from 'tap'
import { makeHome, startGateway } from '../support/gateway.ts'
import type { Answer, TestGateway } from '../support/gateway.ts'
import { listenOnLoopback } from '../support/loopback.ts'
import { assertError } from '../support/error-response.ts'
import { follow } from '../support/runs.ts'
import type { Followed } from '../support/runs.ts'
import { addSkill, installSkill, programText, skillText } from '../support/skills.ts'
import { eventually } from '../support/wait.ts'

const gateway = await startGateway()
t.teardown(() => gateway.stop())

const DEFAULTS = '# the defaults\n'
const CODE = 'export default async () => "shown"\n'
const PROGRAM = `\`\`\`js\n${CODE}\`\`\`\n`
const HIDDEN = PROGRAM.replace('shown', 'hidden')
const text = (name: string, body: string): string => skillText(name, body, 'runtime: javascript')

async function resultOf(agent: Followed, skill: string): Promise<unknown> {
	const run_id = await agent.complete(`/tool ${skill} {}`)
	return (await agent.waitFor(run_id, 'skill.completed')).payload.result
}

void t.test('the review returns the program, character for character', async (t) => {
	const ada = await follow(t, gateway, 'ada')
	const example = '```js\nconst a = await greet()\n```\n'
	const document = text('greet', `# Greet\n\nReturns a word.\n\n${PROGRAM}\nFor example:\n\n${example}`)
	const { id } = await addSkill(gateway, 'ada', document)
	const { body } = await ada.call(`skills/${id}`)
	t.equal(body.program, CODE)
	t.equal(document.split('\n')[body.program_line - 1], CODE.trim())
	t.equal(await resultOf(ada, 'greet'), 'shown')

	const instructions = await installSkill(
		gateway,
		'ada',
		skillText('text', `Do it.\n\n${PROGRAM}\n${HIDDEN}\n<b>x</b>`),
	)
	t.match((await ada.call(`skills/${instructions.id}`)).body, { program: null, program_line: null, runtime: null })
})

void t.test('a document with a second or hidden program is rejected', async (t) => {
	const bea = await follow(t, gateway, 'bea')
	for (const [what, body, message] of [
		['pre', `<pre>\n${HIDDEN}</pre>\n\n${PROGRAM}`, /line 6: HTML can hide a program.*remove <pre>/],
		['details', `<details hidden>\n\n${HIDDEN}\n</details>\n\n${PROGRAM}`, /line 6: HTML .*<details hidden>/],
		['script', `<script>\n${HIDDEN}</script>\n\n${PROGRAM}`, /line 6: HTML .*<script>/],
		['a comment', `<!--\n\n${HIDDEN}-->\n\n${PROGRAM}`, /line 6: /],
		['the title of a link', `[a]: b (t\n\`\`\`js\nexport default 1\n\`\`\`\n)\n\n${PROGRAM}`, /line \d+: /],
		['two programs', `${HIDDEN}\n${PROGRAM}`, /line 10: the program is the block on line 6.*keep one of them/],
		['a list', `- ${HIDDEN.trim().replaceAll('\n', '\n  ')}\n`, /line 6: the program is in a list.*left margin/],
	] as const) {
		const reply = await bea.call('skills/install', { content: text('spy', body) })
		assertError(t, reply, { status: 400, code: 'skill_invalid', message }, what)
	}
	t.strictSame((await bea.call('skills')).body, [])
})

/** Makes the store look like that of version 0.1.0: the skill `two` has a second program, and no record of the rules that were applied. */
const older = `export default {
	name: 'older',
	needs: ['agents'],
	async start(ctx) {
		for await (const agent of ctx.use('agents').list()) {
			const key = ['agent:' + agent.uid, 'skills']
			const text = (id) => ['agent:' + agent.uid, 'skill-text', id]
			const { skills } = (await ctx.store.get(key)).value
			for (const skill of skills)
				if (skill.name === 'two') {
					const { createHash } = await import('node:crypto')
					const both = Buffer.from((await ctx.store.get(text(skill.id))).value).toString().replace('<!-- second -->', ${JSON.stringify(HIDDEN)})
					await ctx.store.put(text(skill.id), both)
					skill.digest = createHash('sha256').update(both).digest('hex')
				}
			await ctx.store.put(key, { skills })
		}
		await ctx.store.delete(['skills', 'rules'])
	},
}`

/** From the audit log, since the event may precede the first subscription. */
async function firstViolation({ request }: TestGateway): Promise<Answer> {
	return eventually(async () => (await request('GET', '/v1/audit?event_type=security.violation')).body.events[0])
}

void t.test('skills of version 0.1.0 keep working, or are reported with what to change', async (t) => {
	const home = makeHome({ config: DEFAULTS, files: { 'plugins/older/index.js': older } }, t)
	const withGateway = async (config: string, work: (gateway: TestGateway) => Promise<void>): Promise<void> => {
		writeFileSync(join(home, 'config/gateway.yaml'), config)
		const started = await startGateway({ home })
		try {
			await work(started)
		} finally {
			await started.stop()
		}
	}
	await withGateway(DEFAULTS, async (before) => {
		await before.request('POST', '/v1/agents', { body: { name: 'ada' } })
		await addSkill(before, 'ada', text('one', PROGRAM))
		await addSkill(before, 'ada', text('two', `${PROGRAM}\n<!-- second -->\n`))
	})
	await withGateway('plugins: {skills: false, older: true}\n', async () => {})
	await withGateway(DEFAULTS, async (after) => {
		const ada = await follow(t, after, 'ada')
		t.match((await firstViolation(after)).payload, {
			skill: 'two',
			message: /earlier version.*line 10: the program is the block on line 6.*install it again/,
		})
		const list: Answer[] = (await ada.call('skills')).body
		t.match(list, [
			{ name: 'one', status: 'active' },
			{ name: 'two', status: 'quarantined' },
		])
		t.equal(await resultOf(ada, 'one'), 'shown')
		const { body } = await ada.call(`skills/${list[1].id}`)
		t.match(body, {
			program: null,
			findings: [{ rule: 'unreadable', severity: 'high', message: /line 10: .*keep one/ }],
		})
		const approved = await ada.call(`skills/${list[1].id}/approve`, { digest: body.digest })
		assertError(t, approved, { status: 400, code: 'skill_invalid', message: /line 10/ })
	})
})

void t.test('application/octet-stream is accepted only for a URL whose path ends in .md', async (t) => {
	const cleo = await follow(t, gateway, 'cleo')
	const server = createServer((request, response) => {
		const octets = Buffer.from([0x2d, 0xff, 0xfe])
		response.writeHead(200, { 'content-type': 'application/octet-stream' })
		response.end(request.url === '/binary.md' ? octets : programText('fetched', 'return 1'))
	})
	const { url, stop } = await listenOnLoopback(server)
	t.teardown(stop)
	const install = (path: string): ReturnType<Followed['call']> => cleo.call('skills/install', { url: url + path })
	for (const path of ['/SKILL.md', '/skill.MD?raw=1'])
		t.match(await install(path), { status: 201, body: { name: 'fetched' } }, path)
	for (const path of ['/SKILL', '/SKILL.md.zip', '/?SKILL.md'])
		assertError(
			t,
			await install(path),
			{ status: 400, code: 'invalid_request', path: 'url', message: /application\/octet-stream/ },
			path,
		)
	assertError(t, await install('/binary.md'), { status: 400, code: 'skill_invalid', message: /not UTF-8/ })
})
