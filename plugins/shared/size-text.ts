const units = ['bytes', 'KiB', 'MiB', 'GiB', 'TiB']

/** A size for people, such as `12.3 MiB`. */
export function sizeText(bytes: number): string {
	const power = Math.min(units.length - 1, Math.floor(Math.log2(Math.max(1, bytes)) / 10))
	return `${power === 0 ? bytes : (bytes / 1024 ** power).toFixed(1)} ${units[power]}`
}
