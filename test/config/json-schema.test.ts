import { writeFileSync } from 'node:fs'
import t from 'tap'
import { parse } from 'yaml'
import { exampleFile, switchedOn } from '../../docs/make/example.ts'
import { configFile } from '../../config/home.ts'
import { jsonSchema } from '../../config/json-schema.ts'
import { composition, readConfig } from '../../core/host/config.ts'
import { fits } from './schema-check.ts'

const schema = jsonSchema(composition)
const home = t.testdir({ config: {} })
const env = { OPENAI_API_KEY: 'k', PORT: '8080' }

function isAccepted(yaml: string): boolean {
	writeFileSync(configFile(home), yaml)
	try {
		readConfig({ home, env })
		return true
	} catch {
		return false
	}
}

void t.test('the schema accepts what the gateway accepts', (t) => {
	const files = [
		'{}',
		switchedOn(exampleFile(composition)),
		'server: { allowed_hosts: }\nruns: { limits: }\nproviders:\nfallback:\nplugins:',
		'server: { port: "${PORT}" }\nlog: { level: "${LEVEL:-warn}" }\nauth_mode: "${MODE:-token}"',
		'providers: { a: { kind: openai, model: m, base_url: "${URL:-http://127.0.0.1:1/v1}", api_key: "${OPENAI_API_KEY}" } }',
		'providers: { a: { kind: openai, model: m, api_key: { secret: OPENAI_KEY } } }',
		'plugins: { a: true, b: false, c: { enabled: false, path: x, any: { thing: [1] } }, d: "${ON:-true}" }',
	]
	for (const yaml of files) {
		t.ok(isAccepted(yaml), `gateway: ${yaml.slice(0, 40)}`)
		t.ok(fits(parse(yaml), schema), `editor: ${yaml.slice(0, 40)}`)
	}
	t.end()
})

void t.test('the schema rejects what the gateway rejects', (t) => {
	const files = [
		'[]',
		'foo: 1',
		'server: { prot: 1 }',
		'server: { port: 70000 }',
		'server: { port: "3000" }',
		'server: { port: 1.5 }',
		'server: { allowed_hosts: [a, a] }',
		'auth_mode: tokens',
		'runs: { limits: { steps: 0 } }',
		'providers: { a: { kind: openia, model: m } }',
		'providers: { a: { kind: openai } }',
		'providers: { a: { kind: openai, model: m, api_key: { secret: "" } } }',
		'providers: { a: { kind: openai, model: m, api_key: { name: x } } }',
		'providers: { a: { kind: offline, model: m } }',
		'providers: { a: { model: m } }',
		'providers: { "a b": { kind: offline } }',
		'plugins: { a: 1 }',
		'plugins: { a: { enabled: 1 } }',
		'plugins: { ../a: true }',
		'log: { level: }',
	]
	for (const yaml of files) {
		t.notOk(isAccepted(yaml), `gateway: ${yaml}`)
		t.notOk(fits(parse(yaml), schema), `editor: ${yaml}`)
	}
	t.end()
})

void t.test('defaults in the schema are valid by the schema', (t) => {
	const walk = (part: typeof schema, path: string): void => {
		if (part.default !== undefined) t.ok(fits(part.default, part, schema), path)
		for (const [name, inner] of Object.entries(part.properties ?? {})) walk(inner, `${path}.${name}`)
		for (const branch of Object.values(part.patternProperties ?? {}).flatMap((one) => one.anyOf ?? []))
			walk(branch, `${path}.*`)
	}
	walk(schema, '')
	t.end()
})
