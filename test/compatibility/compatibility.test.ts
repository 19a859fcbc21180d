/** Breaks since the last release. The changelog must announce all of them. */
import { readFileSync } from 'node:fs'
import t from 'tap'
import { acceptedBreaks, releasedSurface } from './released.ts'
import { breakingTitles, leastStep, verdict } from './accepted.ts'
import { breaksBetween } from './compare.ts'
import { breaksOfContract } from './contract.ts'
import type { Schema } from './schemas.ts'
import { surfaceOfTree } from './surface.ts'
import type { Surface } from './surface.ts'

const current = await surfaceOfTree()
const released = releasedSurface()
const changelog = readFileSync(new URL('../../CHANGELOG.md', import.meta.url), 'utf8')

function allBreaks(from: Surface, to: Surface): string[] {
	return [...breaksBetween(from, to), ...breaksOfContract(from.types, to.types)]
}

void t.test('every break since the last release is announced', async (t) => {
	const wrong = verdict(allBreaks(released, current), acceptedBreaks(), changelog)
	t.equal(wrong.join('\n'), '')
})

void t.test('nothing breaks between two builds of one version', async (t) => {
	t.strictSame(allBreaks(current, current), [])
})

void t.test('planted breaks are found: in a route, an event, a setting, a command, a variable', async (t) => {
	const nothing = { listed: {}, harmless: {} }
	const plants: [expected: string, plant: (to: Surface) => void][] = [
		['route GET /v1/agents: was removed', ({ api }) => delete api.paths['/v1/agents']?.get],
		[
			'route GET /v1/agents: needs the scope agents:list, which was agents:read',
			({ api }) => (operation(api, '/v1/agents', 'get')['x-scope'] = 'agents:list'),
		],
		[
			'route GET /v1/audit: the parameter run_id is required now',
			({ api }) => (parameter(api, '/v1/audit', 'run_id').required = true),
		],
		[
			'route GET /v1/audit: the parameter run_id was removed',
			({ api }) => (parameter(api, '/v1/audit', 'run_id').name = 'run'),
		],
		[
			'route POST /v1/agents: no longer answers 201',
			({ api }) => delete operation(api, '/v1/agents', 'post').responses['201'],
		],
		[
			'response AgentDetails.persona: was removed',
			({ api }) => delete api.components.schemas.AgentDetails?.properties?.persona,
		],
		[
			'response AgentDetails.name: may be null now',
			({ api }) => (schema(api, 'AgentDetails', 'name').type = ['string', 'null']),
		],
		[
			'request POST /v1/agents body.team: is required now',
			({ api }) => body(api, '/v1/agents', 'post').required?.push('team'),
		],
		[
			'request POST /v1/agents body.persona: was removed',
			({ api }) => delete body(api, '/v1/agents', 'post').properties?.persona,
		],
		[
			'request POST /v1/agents body.name: is no longer string',
			({ api }) => Object.assign(body(api, '/v1/agents', 'post').properties?.name ?? {}, { type: 'number' }),
		],
		['event run.queued: was removed', ({ events }) => delete events['run.queued']],
		['event run.started.trigger: was removed', ({ events }) => remove(events['run.started'], 'trigger')],
		[
			'event run.started.trigger: may be absent now',
			({ events }) => events['run.started']?.splice(events['run.started'].indexOf('trigger'), 1, 'trigger?'),
		],
		['setting server.port: was removed', ({ settings }) => delete settings.properties?.server?.properties?.port],
		[
			'setting server.port: has the default 3001, which was 3000',
			({ settings }) => (setting(settings, 'server', 'port').default = 3001),
		],
		[
			'setting backups.keep: has a maximum of 10, which was 1000',
			({ settings }) => {
				const keep = setting(settings, 'backups', 'keep')
				;(keep.anyOf?.[0] ?? keep).maximum = 10
			},
		],
		['command agents create: was removed', ({ commands }) => delete commands['agents create']],
		[
			'command events tail: --cursors was removed',
			({ commands }) => remove(commands['events tail']?.options, '--cursors'),
		],
		[
			'command agents show: takes <agent> <page>, which was <agent>',
			({ commands }) => commands['agents show']?.arguments.push('<page>'),
		],
		['variable SVC_HOME: was removed', ({ variables }) => remove(variables, 'SVC_HOME')],
	]
	for (const [expected, plant] of plants) {
		const to = structuredClone(current)
		plant(to)
		const breaks = breaksBetween(current, to)
		t.ok(breaks.includes(expected), `${expected}\n${breaks.join('\n')}`)
		t.match(verdict(breaks, nothing, changelog).join('\n'), expected, 'the test fails')
	}
})

void t.test('an addition is not a break', async (t) => {
	const to = structuredClone(current)
	to.api.paths['/v1/extra'] = { get: { responses: {} } }
	schema(to.api, 'AgentDetails').properties = {
		...schema(to.api, 'AgentDetails').properties,
		extra: { type: 'string' },
	}
	body(to.api, '/v1/agents', 'post').properties = { ...body(to.api, '/v1/agents', 'post').properties, extra: {} }
	to.events['run.extra'] = []
	to.events['run.started']?.push('extra')
	Object.assign(to.settings.properties ?? {}, { extra: { type: 'string', default: 'x' } })
	to.commands['agents create']?.options.push('--extra')
	to.variables.push('SVC_EXTRA')
	t.strictSame(breaksBetween(current, to), [])
})

// A change of `ToolCall` also changes `ToolDefinition`, and everything that accepts tools.
void t.test('planted breaks of the contract of plugins are found', async (t) => {
	const to = structuredClone(current)
	edit(to, 'core/plugin.d.ts', 'emit(event: NewEvent, agent?: string)', 'emit(event: NewEvent, agent: string)')
	edit(to, 'core/plugin.d.ts', 'trouble(message: string | null)', 'report(message: string | null)')
	edit(to, 'core/plugin.d.ts', 'needs?: readonly string[];', 'needs: readonly string[];')
	edit(to, 'core/runs/tool.d.ts', 'repeatable?: boolean;', 'repeatable?: string;')
	edit(to, 'core/runs/tool.d.ts', 'key: string;', 'key: string | null;')
	edit(to, 'plugins/agents/contract.d.ts', 'agents: Agents;', 'directory: Agents;')
	t.strictSame(breaksOfContract(current.types, to.types).toSorted(), [
		'contract Context.emit: changed',
		'contract Context.primitive: changed',
		'contract Context.toolbox.list: changed',
		'contract Context.tools: changed',
		'contract Context.trouble: changed',
		'contract Plugin.needs: changed',
		'contract Services.agents: changed',
		'contract ToolCall.key: changed',
		'contract ToolDefinition.repeatable: changed',
		'contract ToolDefinition.run: changed',
	])
})

void t.test('an accepted break must exist, and have an entry in the changelog', async (t) => {
	const text =
		'# Changelog\n\n## [Unreleased]\n\n### Breaking changes\n\n- **Events.** Gone.\n\n### Added\n\n- **More.** Yes.\n'
	const older = '## [0.1.0]\n\n### Breaking changes\n\n- **Old.** Gone.\n'
	const line = 'event run.queued: was removed'
	const accepted = { listed: { Events: [line] }, harmless: {} }
	t.strictSame(breakingTitles(`${text}\n${older}`), ['Events'])
	t.strictSame(verdict([line], accepted, text), [])
	t.match(verdict([], accepted, text), [/lists a change that is not a break: event run\.queued/])
	t.match(verdict([line], { listed: { Old: [line] }, harmless: {} }, `${text}\n${older}`), [/no entry \*\*Old\.\*\*/])
	t.strictSame(verdict([line], { listed: {}, harmless: { 'Nobody had it.': [line] } }, text), [])
	t.equal(leastStep('0.1.0', ['Events']), 'minor')
	t.equal(leastStep('1.1.0', ['Events']), 'major')
	t.equal(leastStep('1.1.0', []), 'patch')
})

type Api = Surface['api']

function operation(api: Api, path: string, method: string) {
	return existing(api.paths[path]?.[method])
}

function parameter(api: Api, path: string, name: string) {
	return existing(operation(api, path, 'get').parameters?.find((one) => one.name === name))
}

function body(api: Api, path: string, method: string): Schema {
	return existing(operation(api, path, method).requestBody?.content['application/json']?.schema)
}

function schema(api: Api, name: string, field?: string): Schema {
	const found = existing(api.components.schemas[name])
	return field === undefined ? found : existing(found.properties?.[field])
}

function setting(settings: Schema, section: string, name: string): Schema {
	return existing(settings.properties?.[section]?.properties?.[name])
}

function remove(list: string[] | undefined, item: string): void {
	const at = existing(list).indexOf(item)
	if (at < 0) throw new Error(`there is no ${item} to remove`)
	existing(list).splice(at, 1)
}

function edit({ types }: Surface, file: string, from: string, to: string): void {
	const text = existing(types[file])
	if (!text.includes(from)) throw new Error(`${file} has no "${from}"`)
	types[file] = text.replace(from, to)
}

function existing<T>(value: T | undefined): T {
	if (value === undefined) throw new Error('there is nothing to change')
	return value
}
