const secretName = /key|token|secret|passw|credential|cookie|authorization/i
/** `https://user:password@host` */
const urlWithPassword = /:\/\/[^\s/@:]*:[^\s/@]+@/
const HIDDEN = '(hidden)'

/** Whether a setting of this name holds a key, a token or the like. */
export function isSecretName(name: string): boolean {
	return secretName.test(name)
}

/** Whether a text, the value of a setting of this name, should not be shown. */
export function isSecretText(text: string, name: string | undefined): boolean {
	return (name !== undefined && isSecretName(name)) || urlWithPassword.test(text)
}

/** Settings fit for screens and files: text under the name of a secret, which may come from the environment, is hidden. */
export function withoutSecrets(value: unknown, name?: string): unknown {
	if (typeof value === 'string') return isSecretText(value, name) ? HIDDEN : value
	if (Array.isArray(value)) return value.map((item) => withoutSecrets(item, name))
	if (typeof value !== 'object' || value === null) return value
	const isHandle = Object.keys(value).join() === 'secret'
	return isHandle
		? value
		: Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, withoutSecrets(inner, key)]))
}
