/** The text of gateway.example.yaml, which a first start copies: every setting with its meaning and default, commented out by a `#`. */
import type { Composition } from '../../config/composition.ts'
import { inline } from '../../config/edit.ts'
import { overridingVariables } from '../../config/environment.ts'
import { jsonSchema } from '../../config/json-schema.ts'
import type { JsonSchema } from '../../config/json-schema.ts'

export function exampleFile(composition: Composition): string {
	const { properties = {} } = jsonSchema(composition)
	const parts = [...composition.topics].map(([topic, names]) => {
		const texts = names.map(
			(name) => composition.examples[name] ?? settingText(composition, name, properties[name] ?? {}),
		)
		return `# ---- ${topic} ${'-'.repeat(WIDTH - topic.length - 8)}\n\n${texts.join('\n')}`
	})
	return `${head(composition)}\n${parts.join('\n')}`
}

/** With every setting switched on. */
export function switchedOn(example: string): string {
	return example.replace(/^(\s*)#(?! |$)/gm, '$1')
}

const WIDTH = 118

function settingText(composition: Composition, name: string, schema: JsonSchema): string {
	const more =
		composition.plugins.get(name)?.onByDefault === false
			? ` A setting here, or plugins.${name}: true, switches it on.`
			: ''
	return lines(composition, [name], schema, more).join('\n') + '\n'
}

function lines(composition: Composition, path: string[], schema: JsonSchema, more = ''): string[] {
	const indent = '  '.repeat(path.length - 1)
	const { description = '', properties } = schema
	const value = properties ? undefined : valueOf(composition, path, schema)
	// The value below shows the default, unless that depends on the machine.
	const text = value?.isComputed ? description : description.replace(/ Default [^.]*(\.\S[^.]*)*\.$/, '')
	const comment = wrapped(text + more, WIDTH - indent.length).map((line) => `${indent}# ${line}`)
	const start = `${indent}#${path.at(-1)}:`
	if (!properties) return [...comment, `${start} ${inline(value?.shown)}`]
	const inner = Object.entries(properties).flatMap(([key, one]) => lines(composition, [...path, key], one))
	return [...comment, start, ...inner]
}

/**
 * The default, or the example if the default is missing or an empty list. Only joi's `describe` returns examples, and it is slow,
 * so it is called only for these settings.
 */
function valueOf({ schema }: Composition, path: string[], { default: fallback }: JsonSchema): Value {
	const isEmpty = fallback === undefined || (Array.isArray(fallback) && fallback.length === 0)
	if (!isEmpty) return { shown: fallback, isComputed: false }
	const { flags = {}, examples = [] } = schema.extract(path).describe() as Described
	return { shown: examples[0] ?? flags.default, isComputed: typeof flags.default === 'function' }
}

interface Value {
	shown: unknown
	isComputed: boolean
}

/** The part of joi's description of a setting that the example needs. */
interface Described {
	flags?: { default?: unknown }
	examples?: unknown[]
}

function wrapped(text: string, width: number): string[] {
	const found: string[] = []
	for (const word of text.split(' ')) {
		const line = found.at(-1)
		if (line !== undefined && line.length + word.length < width - 2) found.push(`${found.pop()} ${word}`)
		else found.push(word)
	}
	return found
}

function head(composition: Composition): string {
	const winning = [...overridingVariables(composition).values()].filter((name) => name.startsWith('SVC_'))
	const last = winning.pop()
	return `# yaml-language-server: $schema=./gateway.schema.json

# Settings of the gateway. All are optional; the lines below show the defaults, commented out by a "#".
# To change a setting, remove the "#" in front of it and of its section, and keep the indentation.
# Changes apply when the file is saved, without a restart (store: at the next start). A file with an error changes nothing;
# the log shows where it is and what is wrong.
#
# \${NAME} is replaced by the environment variable NAME, \${NAME:-text} by the text where NAME is not set.
# ${winning.join(', ')} and ${last} in the environment override this file.
`
}
