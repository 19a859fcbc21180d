/** The version of package.json. `npm run release` sets both. */
export const version = '0.2.0'
