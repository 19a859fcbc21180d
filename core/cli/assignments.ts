/** Settings on the command line: `--set key=value`, any number of times. */
import { isObject } from '../util/is-object.ts'
import { jsonIn } from '../util/json-in.ts'
import { CliError } from './contract.ts'

type Settings = Record<string, unknown>

/** Parts of a key; more are an error. */
const DEPTH_LIMIT = 8

/**
 * `limits.steps=20` → `{limits: {steps: 20}}`. A value that is valid JSON, such as a number, `true` or a list, is parsed; any
 * other is text. An empty value is null, which removes the key. A nested map starts as a copy of the one in the `present`
 * settings, and an empty value or null deletes its key there. Throws a usage error.
 */
export function settingsOf(assignments: readonly string[], example: string, present: Settings): Settings {
	const settings: Settings = Object.create(null)
	for (const text of assignments) {
		const [, key = '', value = ''] = /^([^=]+)=(.*)$/s.exec(text) ?? []
		const parts = key.split('.')
		if (key === '' || parts.includes('') || parts.length > DEPTH_LIMIT)
			throw new CliError(
				'usage',
				`--set takes key=value, such as ${example}; "${text.slice(0, 64)}" is not of that form`,
			)
		const [top = '', last = ''] = [parts[0], parts.at(-1)]
		if (parts.length > 1 && !(top in settings) && isObject(present[top])) settings[top] = copyOf(present[top])
		let place = settings
		for (const part of parts.slice(0, -1)) {
			const inner = (place[part] ??= Object.create(null))
			if (!isObject(inner))
				throw new CliError('usage', `--set ${key}: ${part} is also set to a plain value; use one of the two`)
			place = inner
		}
		const read = valueOf(value)
		if (read === null && place !== settings) delete place[last]
		else place[last] = read
	}
	return settings
}

/** Like all settings here, the copy has no prototype, so that `__proto__` is an ordinary key. */
function copyOf(settings: Settings): Settings {
	const entries = Object.entries(settings).map(([key, value]) => [key, isObject(value) ? copyOf(value) : value])
	return Object.assign(Object.create(null), Object.fromEntries(entries))
}

function valueOf(text: string): unknown {
	const value = text === '' ? null : jsonIn(text)
	return value === undefined ? text : value
}
