/** Installs every example as the README describes, approves it and uses it. A local server replaces the internet. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import t from 'tap'
import type { Test } from 'tap'
import { readDocument } from '../../plugins/skills/document.ts'
import { openHosts } from '../../plugins/skills/hosts.ts'
import { checkArguments } from '../../plugins/skills/parameters.ts'
import { callHandler } from '../../plugins/skills/call-handler.ts'
import { programOf } from '../../plugins/skills/use.ts'
import { addSecret } from '../support/add.ts'
import { contextProbe } from '../support/context-probe.ts'
import { startGateway } from '../support/gateway.ts'
import type { Answer } from '../support/gateway.ts'
import { follow } from '../support/runs.ts'
import { addSkill } from '../support/skills.ts'
import { startFakeInternet } from '../support/fake-internet.ts'
import type { ReceivedRequest, FakeResponse, FakeInternet } from '../support/fake-internet.ts'

const folder = new URL('../../skills-examples/', import.meta.url)
const textOf = (name: string): string => readFileSync(new URL(`${name}/SKILL.md`, folder), 'utf8')

/** With its context, the test executes programs as the skills plugin does. */
const probe = contextProbe()
const gateway = await startGateway({ config: 'plugins: {probe: true}\n', files: probe.files })
const ctx = probe.context()
const settings = {
	processes: 1,
	waiting_processes: 0,
	max_waiting: 10,
	memory_mib: 64,
	process_mib: 256,
	cpu_s: 5,
	wall_time_s: 30,
}
const hosts = openHosts({ settings, log: ctx.log })
t.teardown(async () => {
	await hosts[Symbol.asyncDispose]()
	await gateway.stop()
})

void t.test('each example passes its review', async (t) => {
	await gateway.request('POST', '/v1/agents', { body: { name: 'reviewer' } })
	const names = readdirSync(folder).filter((name) => existsSync(new URL(`${name}/SKILL.md`, folder)))
	t.ok(names.length >= 6)
	for (const name of names) {
		const { id, status } = await addSkill(gateway, 'reviewer', textOf(name))
		t.equal(status, 'active')
		const review = (await gateway.request('GET', `/v1/agents/reviewer/skills/${id}`)).body
		t.equal(review.name, name, 'the name of its folder')
		t.strictSame(review.warnings, [], name)
		const findings = review.findings.filter((one: Answer) => !['address', 'may-send-out'].includes(one.rule))
		t.strictSame(findings, [], name)
	}
})

/** Calls an example in a run of the offline provider. Returns the result or error of each call. */
async function use(t: Test, name: string, ...calls: object[]): Promise<string[]> {
	const agent = await follow(t, gateway, `uses-${name}`)
	await addSkill(gateway, `uses-${name}`, textOf(name))
	const run_id = await agent.start(calls.map((args) => `/tool ${name} ${JSON.stringify(args)}`).join('\n'))
	await agent.ended(run_id)
	const ends = agent.eventsOf(run_id).filter((event) => /^skill\.(?:completed|failed)$/.test(event.event_type))
	return ends.map(({ payload }) => String(payload.result ?? payload.message))
}

void t.test('meeting-notes', async (t) => {
	const [result] = await use(t, 'meeting-notes', { language: 'Dutch' })
	t.match(result, '<skill_content name="meeting-notes">\n<skill_arguments>{"language":"Dutch"}')
	t.match(result, 'Do not invent anything')
})

void t.test('business-days', async (t) => {
	const results = await use(
		t,
		'business-days',
		{ from: '2026-03-30', to: '2026-04-07', holidays: ['2026-04-03', '2026-04-06'] },
		{ from: '2026-03-27', days: 1 },
		{ from: '2026-03-30', days: -2 },
		{ from: '2026-02-28', to: '2026-02-20' },
		{ from: '2026-02-30', days: 1 },
		{ from: '2026-03-30' },
	)
	t.match(
		results.slice(0, 4).map((one) => JSON.parse(one)),
		[
			{ business_days: 4, calendar_days: 8 },
			{ date: '2026-03-30', calendar_days: 3 },
			{ date: '2026-03-26' },
			{ business_days: -5 },
		],
	)
	t.match(results[4], 'from must be a date such as 2026-03-30, not "2026-02-30"')
	t.match(results[5], 'give either to or days')
})

void t.test('csv-summary', async (t) => {
	const csv = 'item;price;note\r\n"a ""big"" one; red";0.1;\r\nb;0.2;x\r\nb;-4;\r\n'
	const [first, second] = await use(t, 'csv-summary', { csv }, { csv: 'a,b\n1' })
	t.strictSame(JSON.parse(first ?? ''), {
		rows: 3,
		columns: [
			{ name: 'item', filled: 3, distinct: 2 },
			{ name: 'price', filled: 3, distinct: 3, numbers: { sum: -3.7, mean: -3.7 / 3, min: -4, max: 0.2 } },
			{ name: 'note', filled: 1, distinct: 1 },
		],
	})
	t.match(second, 'row 1 has 1 fields, but the first line has 2')
})

void t.test('decision-log', async (t) => {
	const results = await use(
		t,
		'decision-log',
		{ action: 'add', text: 'We deploy on Tuesdays.', reason: 'Everybody is in the office.' },
		{ action: 'find', text: 'deploy on Tuesdays' },
		{ action: 'drop', text: 'x' },
	)
	t.match(JSON.parse(results[0] ?? ''), { kept: /Tuesdays.*Reason: Everybody/, id: /./ })
	t.match(results[1], /^\d{4}-\d\d-\d\d Decision: We deploy on Tuesdays\. Reason: Everybody/)
	t.match(results[2], /action/)
})

/** Executes an example's program as the plugin does, but `svc.fetch` uses the stand-in. */
async function runWith(name: string, args: object, { send }: FakeInternet): Promise<Answer> {
	const document = await readDocument(textOf(name))
	const agent = await ctx.use('agents').get('online')
	const { signal } = new AbortController()
	const call = { run_id: 'run', agent, key: 'run:call', signal, emit: () => {} }
	const holder = { skill: name, skill_id: 'id', permissions: document.permissions, call: call as never }
	return hosts.run({
		owner: 'one',
		program: programOf(document),
		args: checkArguments(document.parameters, { ...args }),
		signal,
		called: callHandler(ctx, holder, send),
		logged: () => {},
	})
}

void t.test('examples that need the internet', async (t) => {
	await gateway.request('POST', '/v1/agents', { body: { name: 'online' } })

	await t.test('weather', async (t) => {
		const standIn = await startFakeInternet(t, ({ url }): FakeResponse => {
			const { hostname, searchParams } = new URL(url)
			if (hostname === 'geocoding-api.open-meteo.com') {
				const town = { name: 'Lisbon', latitude: 38.71667, longitude: -9.13333, country: 'Portugal', admin1: 'Lisbon' }
				return { body: searchParams.get('name') === 'Lisbon' ? { results: [town] } : { generationtime_ms: 0.4 } }
			}
			if (searchParams.get('forecast_days') === '7') return { status: 429, body: { error: true, reason: 'Too many.' } }
			return {
				body: {
					latitude: 38.75,
					current: {
						time: '2026-03-30T12:00',
						interval: 900,
						temperature_2m: 18.4,
						apparent_temperature: 17.9,
						precipitation: 0,
						weather_code: 2,
						wind_speed_10m: 14.8,
					},
					daily: {
						time: ['2026-03-30', '2026-03-31'],
						weather_code: [61, 0],
						temperature_2m_max: [19.1, 20.3],
						temperature_2m_min: [12, 12.4],
						precipitation_probability_max: [80, 5],
					},
				},
			}
		})
		const result = await runWith('weather', { place: 'Lisbon', days: 2 }, standIn)
		t.match(result, {
			place: 'Lisbon, Lisbon, Portugal',
			now: { sky: 'partly cloudy', temperature_c: 18.4, wind_kmh: 14.8 },
			forecast: [{ date: '2026-03-30', sky: 'rain', max_c: 19.1, rain_percent: 80 }, { sky: 'clear' }],
		})
		t.match(
			standIn.arrived[1]?.url,
			/^https:\/\/api\.open-meteo\.com\/v1\/forecast\?latitude=38\.71667&.*forecast_days=2$/,
		)
		await t.rejects(runWith('weather', { place: 'Nowhere' }, standIn), { message: /there is no place called Nowhere/ })
		await t.rejects(runWith('weather', { place: 'Lisbon', days: 7 }, standIn), { message: /status 429/ })
		await t.rejects(runWith('weather', { place: 'Lisbon', days: 8 }, standIn), { message: /1 to 7/ })
	})

	await t.test('github-issues', async (t) => {
		const token = 'ghp_forTheStandInOnly0123456789'
		const standIn = await startFakeInternet(t, ({ url, headers }): FakeResponse => {
			if (headers.authorization !== `Bearer ${token}`) return { status: 401 }
			if (!url.includes('/nodejs/node/')) return { status: 404, body: { message: 'Not Found' } }
			const user = { login: 'ada', id: 1 }
			const common = { user, created_at: '2026-01-02T03:04:05Z', comments: 2, labels: [{ id: 9, name: 'bug' }] }
			return {
				body: [
					{ ...common, number: 7, title: 'It breaks', html_url: 'https://github.com/nodejs/node/issues/7' },
					{ ...common, number: 8, title: 'A change', html_url: 'x', pull_request: { url: 'x' } },
				],
			}
		})
		const args = { repository: 'nodejs/node', label: 'bug' }
		await t.rejects(runWith('github-issues', args, standIn), { message: /GITHUB_TOKEN/ }, 'without a grant')
		t.strictSame(standIn.arrived, [], 'there was no request')
		await addSecret(gateway, 'online', 'GITHUB_TOKEN', token)
		t.strictSame(await runWith('github-issues', args, standIn), [
			{
				number: 7,
				title: 'It breaks',
				url: 'https://github.com/nodejs/node/issues/7',
				author: 'ada',
				labels: ['bug'],
				created_at: '2026-01-02T03:04:05Z',
				comments: 2,
			},
		])
		t.match(standIn.arrived[0]?.url, /^https:\/\/api\.github\.com\/repos\/nodejs\/node\/issues\?.*labels=bug$/)
		const missing = runWith('github-issues', { repository: 'no/such' }, standIn)
		await t.rejects(missing, { message: /there is no repository no\/such/ })
		const odd = runWith('github-issues', { repository: '../../user' }, standIn)
		await t.rejects(odd, { message: /owner\/name/ })
	})

	await t.test('deepl-translate', async (t) => {
		const answer = ({ url, headers, body }: ReceivedRequest): FakeResponse => {
			if (headers.authorization !== 'DeepL-Auth-Key 0123-4567:fx') return { status: 403 }
			t.equal(url, 'https://api-free.deepl.com/v2/translate')
			const { text, target_lang } = JSON.parse(body) as { text: string[]; target_lang: string }
			return { body: { translations: [{ detected_source_language: 'EN', text: `${target_lang}: ${text[0]}` }] } }
		}
		const standIn = await startFakeInternet(t, answer)
		await addSecret(gateway, 'online', 'DEEPL_API_KEY', '0123-4567:fx')
		const result = await runWith('deepl-translate', { text: 'Hello', to: 'de' }, standIn)
		t.strictSame(result, { from: 'EN', to: 'DE', text: 'DE: Hello' })
		await t.rejects(runWith('deepl-translate', { text: 'x', to: 'DE', formality: 'rude' }, standIn), /formality/)
	})
})
