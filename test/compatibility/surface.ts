/** The surface of a version, on which users rely: routes, events, settings, commands, and the contract of plugins. Read from the code. */
import { readFileSync } from 'node:fs'
import type { Command } from 'commander'
import { jsonSchema } from '../../config/json-schema.ts'
import { composition } from '../../core/host/config.ts'
import { declaredBy } from '../../core/host/declared.ts'
import { version } from '../../core/version.ts'
import { subcommandsOf, wholeProgram } from '../../docs/make/help.ts'
import { builtInPlugins } from '../../docs/make/plugins.ts'
import { contractTypes } from './contract.ts'
import type { Schema } from './schemas.ts'

export interface Surface {
	version: string
	/** The document of the API, without descriptions. */
	api: Api
	/** The fields of each type of event; `name?` may be absent. */
	events: Record<string, string[]>
	/** The schema of gateway.yaml, without descriptions. */
	settings: Schema & { $defs?: Record<string, Schema> }
	/** Each command of `svc`, such as `agents create`. */
	commands: Record<string, Usage>
	/** Environment variables that the pages about settings and commands mention. */
	variables: string[]
	/** The emitted types of the contract of plugins, by file. */
	types: Record<string, string>
}

export interface Api {
	paths: Record<string, Record<string, Operation>>
	components: { schemas: Record<string, Schema>; responses?: Record<string, Response> }
}

export interface Operation {
	parameters?: { name: string; in: string; required?: boolean; schema: Schema }[]
	requestBody?: { required?: boolean; content: Record<string, { schema?: Schema }> }
	responses: Record<string, Response>
	'x-scope'?: string | string[]
}

export interface Response {
	$ref?: string
	content?: Record<string, { schema?: Schema }>
}

export interface Usage {
	/** Each as help writes it: `<name>`, `[file]`. */
	arguments: string[]
	/** The flags, by the long one, those with a value as `--to <>` or `--to [<>]`. */
	options: string[]
}

/** The surface of this tree. Takes some seconds: it emits the types. */
export async function surfaceOfTree(): Promise<Surface> {
	const { paths, components } = JSON.parse(pageAt('openapi.json')) as Api
	const { events } = declaredBy(await builtInPlugins())
	return {
		version,
		api: withoutTexts({ paths, components: { schemas: components.schemas, responses: components.responses ?? {} } }),
		events: Object.fromEntries([...events].map(([type, { payload }]) => [type, Object.keys(payload)])),
		settings: withoutTexts(jsonSchema(composition)),
		commands: usagesOf(await wholeProgram()),
		variables: variablesIn(`${pageAt('configuration.md')}${pageAt('command-line.md')}`),
		types: contractTypes(),
	}
}

function usagesOf(command: Command, path: readonly string[] = []): Record<string, Usage> {
	const inner = subcommandsOf(command)
	const own = {
		arguments: command.registeredArguments.map((one) => (one.required ? `<${one.name()}>` : `[${one.name()}]`)),
		options: command.options.map(
			({ long, short, required, optional }) => `${long ?? short}${required ? ' <>' : optional ? ' [<>]' : ''}`,
		),
	}
	const name = path.join(' ')
	return Object.assign(
		path.length > 0 ? { [name]: own } : {},
		...inner.map((one) => usagesOf(one, [...path, one.name()])),
	) as Record<string, Usage>
}

function variablesIn(pages: string): string[] {
	return [...new Set(pages.match(/\b(?:SVC|OPENAI)_[A-Z_]*[A-Z]\b/g))].toSorted()
}

const texts: ReadonlySet<string> = new Set(
	'description summary title example examples tags operationId headers security servers $schema $comment'.split(' '),
)

/** Removes the texts for people. Fields with the same names are kept. */
function withoutTexts<T>(value: T, isMap = false): T {
	if (Array.isArray(value)) return value.map((one) => withoutTexts(one as unknown)) as T
	if (typeof value !== 'object' || value === null) return value
	const entries = Object.entries(value).filter(([key]) => isMap || !texts.has(key))
	return Object.fromEntries(entries.map(([key, inner]) => [key, withoutTexts(inner, maps.has(key) && !isMap)])) as T
}

/** Their keys are names. */
const maps: ReadonlySet<string> = new Set(
	'properties patternProperties schemas responses paths content $defs'.split(' '),
)

function pageAt(name: string): string {
	return readFileSync(new URL(`../../docs/${name}`, import.meta.url), 'utf8')
}
