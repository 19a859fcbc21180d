/**
 * The text of gateway.yaml for API clients: values that look like secrets are replaced by `(hidden 1)`, `(hidden 2)` and so on, in
 * the order of the file. A changed text may contain these placeholders; each is replaced by the original value.
 */
import { isMap, isPair, isScalar, isSeq, parseDocument, visit } from 'yaml'
import { Fault } from '../../core/errors.ts'
import { isSecretName, isSecretText } from '../../core/host/config.ts'

const PLACEHOLDER = /\(hidden (\d{1,6})\)/g
/** A value that only names a variable reveals nothing. */
const REFERENCE = /^\$\{[^}]*\}$/
/** For a file that is not YAML: the rest of a line after the name of a secret. */
const SECRET_LINE = /^[ \t-]*["']?([\w.-]+)["']?[ \t]*:[ \t]+(\S.*)$/gm

interface Range {
	from: number
	to: number
}

/** The text with placeholders. */
export function hideValues(text: string): string {
	let shown = ''
	let end = 0
	for (const [index, { from, to }] of secretsIn(text).entries()) {
		shown += `${text.slice(end, from)}(hidden ${index + 1})`
		end = to
	}
	return shown + text.slice(end)
}

/** Restores the values in an edited copy of `hideValues(before)`. Throws `invalid_request` for an unknown placeholder. */
export function restoreValues(text: string, before: string): string {
	const secrets = secretsIn(before)
	return text.replaceAll(PLACEHOLDER, (placeholder, number: string) => {
		const range = secrets[Number(number) - 1]
		if (range) return before.slice(range.from, range.to)
		throw new Fault(
			'invalid_request',
			`"${placeholder}" is not a placeholder of a hidden value in gateway.yaml; write the value, or keep the original placeholder`,
		)
	})
}

/** In the order of the file. */
function secretsIn(text: string): Range[] {
	const document = parseDocument(text, { prettyErrors: false, schema: 'core', uniqueKeys: false, stringKeys: true })
	if (document.errors.length > 0) return secretLines(text)
	const found: Range[] = []
	visit(document, {
		Scalar(key, { value, range }, path) {
			if (key === 'key' || typeof value !== 'string' || !range || value === '' || REFERENCE.test(value)) return
			if (isHandle(path) || !isSecretText(value, nameOf(path))) return
			// Without the final line break of a block scalar.
			const from = range[0]
			found.push({ from, to: from + text.slice(from, range[1]).trimEnd().length })
		},
	})
	return found
}

/** The name of the setting, or of the list that contains the value. */
function nameOf(path: readonly unknown[]): string | undefined {
	const holder = path.findLast((one) => !isSeq(one))
	return isPair(holder) && isScalar(holder.key) ? String(holder.key.value) : undefined
}

/** `{secret: NAME}` names a secret of the vault. */
function isHandle(path: readonly unknown[]): boolean {
	const map = path.at(-2)
	return nameOf(path) === 'secret' && isMap(map) && map.items.length === 1
}

function secretLines(text: string): Range[] {
	return [...text.matchAll(SECRET_LINE)].flatMap(({ 0: line, 1: name = '', 2: value = '', index }) => {
		if (!isSecretName(name)) return []
		const to = index + line.length
		return [{ from: to - value.length, to }]
	})
}
