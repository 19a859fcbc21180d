import t from 'tap'
import { jsonSchema } from '../../config/json-schema.ts'
import type { JsonSchema } from '../../config/json-schema.ts'
import { composition } from '../../core/host/config.ts'

interface Described {
	flags?: { description?: string; default?: unknown }
	keys?: Record<string, Described>
	patterns?: { rule: Described }[]
	matches?: { schema?: Described; switch?: { then: Described }[] }[]
	items?: Described[]
}

/** Every named setting with its dotted path, including those of providers and plugins. */
function* settings(part: Described, path = ''): Generator<[path: string, setting: Described]> {
	for (const [name, inner] of Object.entries(part.keys ?? {})) {
		yield [`${path}${name}`, inner]
		yield* settings(inner, `${path}${name}.`)
	}
	for (const { rule } of part.patterns ?? []) yield* settings(rule, `${path}*.`)
	for (const match of part.matches ?? []) {
		for (const branch of [match.schema, ...(match.switch ?? []).map((one) => one.then)]) {
			if (branch) yield* settings(branch, path)
		}
	}
}

const all = [...settings(composition.schema.describe() as Described)]

void t.test('every setting has a short description', (t) => {
	const paths = all.map(([path]) => path)
	for (const path of ['server.port', 'runs.limits.steps', 'providers.*.api_key', 'plugins.*.path']) {
		t.ok(paths.includes(path), `${path} is found`)
	}
	for (const [path, { flags }] of all) {
		const text = flags?.description ?? ''
		t.match(text, /^\S.{8,160}\.$/, path)
		t.notMatch(text, /TODO|\n/, path)
	}
	t.end()
})

void t.test('a description states the default', (t) => {
	for (const [path, { flags, keys, patterns, items }] of all) {
		const value = flags?.default
		if (keys || value === undefined) continue
		const isInWords = patterns !== undefined || items !== undefined || typeof value === 'function'
		const description = flags?.description ?? ''
		const shows = isInWords ? /Default:? /.test(description) : description.includes(`Default ${String(value)}.`)
		t.ok(shows, `${path}: ${description}`)
	}
	t.end()
})

void t.test('the name of a duration or size ends with its unit', (t) => {
	for (const [path, { flags }] of all) {
		const text = flags?.description ?? ''
		if (/^Seconds\b/.test(text)) t.match(path, /_s$/, path)
		if (/^Days\b/.test(text)) t.match(path, /_days$/, path)
		if (/^Mebibytes\b/.test(text)) t.match(path, /_mib$/, path)
	}
	t.end()
})

void t.test('the JSON Schema contains every description', (t) => {
	const check = (part: JsonSchema, path: string): void => {
		for (const [name, inner] of Object.entries(part.properties ?? {})) {
			t.ok(inner.description, path + name)
			check(inner, `${path}${name}.`)
		}
		for (const inner of [...(part.anyOf ?? []), ...Object.values(part.patternProperties ?? {})])
			check(inner, `${path}*.`)
	}
	check(jsonSchema(composition), '')
	t.end()
})
