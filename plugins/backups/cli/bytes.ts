const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'] as const

/** For people: `12.3 MiB`. */
export function bytesOf(count: number): string {
	const power = Math.min(Math.floor(Math.log2(Math.max(count, 1)) / 10), units.length - 1)
	return `${power === 0 ? count : (count / 1024 ** power).toFixed(1)} ${units[power]}`
}
