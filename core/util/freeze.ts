/** Freezes plain data deeply, for values that several parts share. Byte arrays cannot be frozen. */
export function freeze<T>(value: T): T {
	if (typeof value !== 'object' || value === null || ArrayBuffer.isView(value)) return value
	for (const item of Object.values(value)) freeze(item)
	return Object.freeze(value)
}
