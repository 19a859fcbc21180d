/** The gateway.yaml of a first start: every setting with its meaning and default, switched off by a `#`. */
import type { Composition } from './composition.ts'
import { inline } from './edit.ts'
import { overridingVariables } from './environment.ts'

export function exampleFile(composition: Composition): string {
	const { keys = {} } = composition.schema.describe() as Described
	const parts = [...composition.topics].map(([topic, names]) => {
		const texts = names.map((name) => composition.examples[name] ?? settingText(composition, name, keys[name] ?? {}))
		return `# ---- ${topic} ${'-'.repeat(WIDTH - topic.length - 8)}\n\n${texts.join('\n')}`
	})
	return `${head(composition)}\n${parts.join('\n')}`
}

/** With every setting switched on. */
export function switchedOn(example: string): string {
	return example.replace(/^(\s*)#(?! |$)/gm, '$1')
}

/** As much of joi's description of a schema as the example needs. */
interface Described {
	type?: string
	flags?: { description?: string; default?: unknown }
	keys?: Record<string, Described>
	examples?: unknown[]
}

const WIDTH = 118

function settingText({ plugins }: Composition, name: string, described: Described): string {
	const more =
		plugins.get(name)?.onByDefault === false ? ` A setting here, or plugins.${name}: true, switches it on.` : ''
	return lines(name, described, '', more).join('\n') + '\n'
}

function lines(name: string, { flags = {}, keys, examples = [] }: Described, indent: string, more = ''): string[] {
	const { description = '', default: fallback } = flags
	// The value below it says the default, unless that depends on the machine.
	const text = typeof fallback === 'function' ? description : description.replace(/ Default [^.]*(\.\S[^.]*)*\.$/, '')
	const comment = wrapped(text + more, WIDTH - indent.length).map((line) => `${indent}# ${line}`)
	if (!keys) return [...comment, `${indent}#${name}: ${inline(examples[0] ?? fallback)}`]
	const inner = Object.entries(keys).flatMap(([key, one]) => lines(key, one, `${indent}  `))
	return [...comment, `${indent}#${name}:`, ...inner]
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

# Settings of the gateway. All are optional: what follows shows the defaults, switched off by a "#".
# To change a setting, remove the "#" in front of it and of the section that it stands in, and keep the indentation.
# Changes apply when the file is saved, without a restart (store: at the next start). A file with an error changes nothing;
# the log says where it is and what is wrong.
#
# \${NAME} is replaced by the environment variable NAME, \${NAME:-text} by the text where NAME is not set.
# ${winning.join(', ')} and ${last} in the environment override this file.
`
}
