/** Parts of docs/configuration.md, from the schema of gateway.yaml and its example. */
import { parse, stringify } from 'yaml'
import { appliedAtStart } from '../../config/core-sections.ts'
import { overridingVariables } from '../../config/environment.ts'
import type { Explanation } from '../../config/explain.ts'
import { allKeys, composition, explain, pathOf } from '../../core/host/config.ts'
import { exampleFile, switchedOn } from './example.ts'
import { code, plain, table } from './markdown.ts'

const otherVariables: [string, string][] = [
	['SVC_HOME', 'The home folder, which holds config, data, plugins, skills and keys. Default `~/.svc`.'],
	[
		'SVC_ALLOW_SHARED_HOME',
		'`1` lets a gateway start although others can write to its home ([why not](security.md#the-home-folder)).',
	],
	...[...composition.plugins.values()].flatMap(({ variables = {} }) => Object.entries(variables)),
]

/** The variables that override settings, and others. */
export function environmentTable(): string {
	const overriding = [...overridingVariables(composition)].filter(([, name]) =>
		otherVariables.every(([other]) => other !== name),
	)
	const rows = [...overriding.map(([key, name]) => [name, `${code(key)}.`] as const), ...otherVariables]
	return table(
		['Variable', ''],
		rows.map(([name, what]) => [code(name), what]),
	)
}

/** All settings, by section. */
export function settingsReference(): string {
	const variables = overridingVariables(composition)
	const example = parse(switchedOn(exampleFile(composition))) as Record<string, unknown>
	const explained = allKeys().map((key) => explain(pathOf(key.replaceAll('<name>', 'name'))))
	const sections = Map.groupBy(explained, ({ key }) => key.split('.', 1)[0] as string)
	return [...sections].map(([name, settings]) => section(name, settings, variables, example)).join('\n\n')
}

function section(
	name: string,
	settings: Explanation[],
	variables: Map<string, string>,
	example: Record<string, unknown>,
): string {
	const { meaning } = explain([name])
	const rows = settings.map((one) => [
		code(one.key),
		[plain(one.meaning), variables.has(one.key) ? `Variable: ${code(variables.get(one.key) as string)}.` : '']
			.join(' ')
			.trim(),
		one.type.replaceAll(' | ', ', '),
		shown(one.default),
	])
	const waiting = appliedAtStart.filter((key) => key === name || key.startsWith(`${name}.`)).map(code)
	const late = waiting.length > 0 ? `\n\nA change of ${waiting.join(', ')} applies from the next start.` : ''
	const yaml = `\`\`\`yaml\n${stringify({ [name]: example[name] }, { lineWidth: 0 }).trim()}\n\`\`\``
	return `## ${name}\n\n${plain(meaning)}${late}\n\n${table(['Setting', 'Meaning', 'Values', 'Default'], rows)}\n\n${yaml}`
}

function shown(value: unknown): string {
	if (value === undefined) return ''
	if (Array.isArray(value)) return value.length > 0 ? code(value.join(', ')) : 'none'
	return typeof value === 'string' && value.includes(' ') ? value : code(String(value))
}
